import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pull, parseModels, size } from '../src/core/models';

test('the models are those that hone lists, with a size for people', () => {
    const model = {
        name: 'smollm2-135m',
        bytes: 98_566_144,
        licence: 'Apache-2.0',
        present: true,
        configured: false,
    };
    assert.deepEqual(
        parseModels(JSON.stringify({ models: [{ ...model, template: 'prefix-only' }] }))[0],
        { ...model, template: 'prefix-only' },
    );
    assert.equal(size(model), '94 MiB');
    assert.throws(() => parseModels('{}'), /hone model list/);
});

test('the bar moves by whole percents, and not back when a part begins again', () => {
    const pull = new Pull();
    const told = [
        { bytes: 0, total: 400 },
        { bytes: 3, total: 400 },
        { bytes: 50, total: 400 },
        { bytes: 0, total: 400 },
        { bytes: 400, total: 400 },
        { note: 'checked' },
        { path: '/models/m.gguf' },
        { bytes: 9, total: 0 },
    ].map((line) => pull.take(JSON.stringify(line)));
    const none = undefined;
    assert.deepEqual(told, [
        none,
        none,
        { increment: 12, message: '12 %' },
        none,
        { increment: 88, message: '100 %' },
        none,
        none,
        none,
    ]);
});
