import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAdapters } from '../src/core/adapters';

test('the list of adapters is read', () => {
    const adapter = {
        version: 1,
        parent: 0,
        kept: true,
        created_at: 5,
        report: { episodes_used: 16 },
    };
    assert.deepEqual(parseAdapters(JSON.stringify({ active: 1, adapters: [adapter] })), {
        active: 1,
        adapters: [adapter],
    });
});

test('another answer is an error that says what to do', () => {
    for (const text of ['{}', 'null', '{"active": 1}']) {
        assert.throws(() => parseAdapters(text), /update hone/);
    }
});
