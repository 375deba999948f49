import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locate, type SearchPlaces } from '../src/core/locate';

function where(executable: string[], over: Partial<SearchPlaces> = {}) {
    return locate({
        configured: '',
        extensionFolder: '/ext',
        homeFolder: '/home/ada',
        platform: 'linux',
        arch: 'x64',
        searchPath: '/usr/bin:/opt/bin',
        isExecutable: (path) => executable.includes(path),
        ...over,
    });
}

const BUNDLED = '/ext/bin/linux-x64/hone';

test('the setting comes first, then the bundled program, then PATH', () => {
    const all = ['/my/hone', BUNDLED, '/opt/bin/hone'];
    assert.deepEqual(where(all, { configured: '/my/hone' }), {
        path: '/my/hone',
        source: 'hone.path',
    });
    assert.deepEqual(where(all), { path: BUNDLED, source: 'bundled' });
    assert.deepEqual(where(all, { arch: 'arm64' }), { path: '/opt/bin/hone', source: 'PATH' });
});

test('an editor whose PATH is short finds the programs of the home folder', () => {
    const own = ['/home/ada/.local/bin/hone', '/home/ada/.cargo/bin/hone'];
    assert.deepEqual(where(own), { path: own[1], source: 'home folder' });
    const onPath = { path: '/opt/bin/hone', source: 'PATH' };
    assert.deepEqual(where([...own, onPath.path]), onPath);
});

test('a setting that is wrong is a problem, not a reason to run another program', () => {
    const problem = { problem: '/my/hone cannot be run; correct the setting hone.path' };
    assert.deepEqual(where([BUNDLED], { configured: '/my/hone' }), problem);
});

test('~ is the home folder', () => {
    assert.equal(
        where(['/home/ada/bin/hone'], { configured: '~/bin/hone' }).path,
        '/home/ada/bin/hone',
    );
});

test('a relative entry of PATH is ignored, because it would run a program of the workspace', () => {
    const found = where(['hone', './hone', 'bin/hone'], { searchPath: '.:bin:' });
    assert.deepEqual(found, {
        problem: 'The program `hone` was not found; install it, or set hone.path',
    });
});
