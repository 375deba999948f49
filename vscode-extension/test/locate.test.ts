import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locate, type SearchPlaces } from '../src/core/locate';
import { onPath } from '../src/core/search';

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

const NOT_FOUND = { problem: 'The program `hone` was not found; install it, or set hone.path' };

test('a relative entry of PATH is ignored, because it would run a program of the workspace', () => {
    const found = where(['hone', './hone', 'bin/hone', '/hone'], { searchPath: '.:bin::./' });
    assert.deepEqual(found, NOT_FOUND);
});

test('on Windows neither the current folder nor the current drive is searched', () => {
    const right = 'C:\\Program Files\\hone\\hone.exe';
    const windows = {
        platform: 'win32',
        homeFolder: 'C:\\Users\\ada',
        extensionFolder: 'C:\\ext',
        searchPath: '.;bin;\\bin;C:bin;;"C:\\Program Files\\hone"',
    };
    const ofFolder = [
        'hone.exe',
        '.\\hone.exe',
        'bin\\hone.exe',
        '\\bin\\hone.exe',
        'C:bin\\hone.exe',
    ];
    assert.deepEqual(where(ofFolder, windows), NOT_FOUND);
    assert.deepEqual(where([...ofFolder, right], windows), { path: right, source: 'PATH' });
    const shim = 'C:\\Program Files\\hone\\hone.cmd';
    assert.deepEqual(where([shim], windows), NOT_FOUND, 'a shell would run it');
    const own = 'C:\\Users\\ada\\.cargo\\bin\\hone.exe';
    assert.deepEqual(where([own], windows), { path: own, source: 'home folder' });
});

test('a setting that is no full path names a file of the workspace, and is refused', () => {
    for (const [configured, platform] of [
        ['./hone', 'linux'],
        ['hone', 'linux'],
        ['bin\\hone.exe', 'win32'],
        ['C:hone.exe', 'win32'],
    ] as const) {
        const problem = `${configured} is no full path; correct the setting hone.path`;
        assert.deepEqual(where([configured], { configured, platform }), { problem });
    }
});

test('another program is searched in the same way', () => {
    const at = { platform: 'linux', searchPath: '.:/usr/bin:/opt/bin' };
    const isExecutable = (path: string) => ['git', '/opt/bin/git'].includes(path);
    assert.equal(onPath('git', { ...at, isExecutable }), '/opt/bin/git');
    assert.equal(onPath('git', { ...at, searchPath: '.:', isExecutable }), undefined);
});
