import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problemMessage, Problems } from '../src/core/problems';
import type { ServerState } from '../src/core/status';

const FAILED: ServerState = { kind: 'failed', problem: 'no model' };

test('a problem is told once, however often the start is tried', () => {
    const problems = new Problems();
    assert.equal(problems.news(FAILED, 0), 'no model');
    for (const state of [{ kind: 'starting' } as const, FAILED]) {
        assert.equal(problems.news(state, 1), undefined);
    }
    assert.equal(problems.news({ kind: 'failed', problem: 'no program' }, 2), 'no program');
});

test('a server that ran for a moment was not well', () => {
    const problems = new Problems();
    problems.news(FAILED, 0);
    problems.news({ kind: 'running' }, 1_000);
    assert.equal(problems.news(FAILED, 2_000), undefined);
    problems.news({ kind: 'running' }, 3_000);
    problems.news({ kind: 'starting' }, 200_000);
    assert.equal(problems.news(FAILED, 201_000), 'no model');
});

test('who starts the server is told again what is wrong', () => {
    const problems = new Problems();
    problems.news(FAILED, 0);
    problems.news({ kind: 'stopped' }, 1);
    problems.news({ kind: 'starting' }, 2);
    assert.equal(problems.news(FAILED, 3), 'no model');
});

test('the message says how the server is started again', () => {
    assert.match(problemMessage('no model.'), /^Hone: no model\. Hone tries again.*Restart Server/);
});
