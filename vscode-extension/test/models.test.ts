import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseModels, percentHere } from '../src/models';

const TABLE = `
    name                template       size        licence                                 here
    qwen2.5-coder-0.5b  qwen2.5-coder  468.64 MiB  Apache-2.0                              12 %
    qwen2.5-coder-3b    qwen2.5-coder  1.96 GiB    Qwen Research License (non-commercial)  no
 →  smollm2-135m        prefix-only    93.81 MiB   Apache-2.0                              yes
`;

test('the table of models is read by the places of its headings', () => {
    const models = parseModels(TABLE);
    assert.deepEqual(models[1], {
        name: 'qwen2.5-coder-3b',
        size: '1.96 GiB',
        licence: 'Qwen Research License (non-commercial)',
        here: 'no',
        configured: false,
    });
    assert.deepEqual(models.map((model) => model.configured), [false, false, true]);
    assert.deepEqual(models.map(percentHere), [12, 0, 100]);
});

test('another table is an error', () => {
    assert.throws(() => parseModels('no such command'), /hone model list/);
});
