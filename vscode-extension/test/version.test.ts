import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverProblem } from '../src/core/version';

const problem = (version: string | undefined): string | undefined =>
    serverProblem({ name: 'hone', ...(version && { version }) }, '/bin/hone', '0.9.1');

test('servers from the minimum version on are accepted', () => {
    for (const version of ['0.9.1', '0.9.1-rc.1', '0.10.0', '1.0.0']) {
        assert.equal(problem(version), undefined);
    }
});

test('any other server is named with the fix', () => {
    assert.equal(
        problem('0.9.0'),
        '/bin/hone: Hone 0.9.0 is too old for this extension; install 0.9.1 or later',
    );
    assert.equal(problem('0.8.9')?.includes('too old'), true);
    assert.equal(problem(undefined)?.includes('does not report its version'), true);
    const other = serverProblem({ name: 'pylsp', version: '9.9.9' }, '/bin/hone');
    assert.equal(other, "/bin/hone is not Hone's server; correct the setting hone.path");
    assert.notEqual(serverProblem(undefined, '/bin/hone'), undefined);
});
