import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
    addedModel,
    bySuggestion,
    description,
    downloadEnvironment,
    parseModels,
    Pull,
    size,
} from '../src/core/models';

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

test('a user sees size and speed before choosing, and no speed where hone names none', () => {
    const model = {
        name: 'qwen2.5-coder-0.5b',
        bytes: 491_400_064,
        licence: 'Apache-2.0',
        present: false,
        configured: true,
    };
    assert.equal(
        description({ ...model, expected_line_ms: 405 }),
        '469 MiB, about 0.4 s a line on two cores, not downloaded yet',
    );
    assert.equal(description({ ...model, present: true, learns: true }), '469 MiB, downloaded');
    assert.equal(
        description({ ...model, learns: false }),
        '469 MiB, not downloaded yet, nothing is learned on it',
    );
});

test('models that hone does not suggest come behind the others', () => {
    const model = { bytes: 1, licence: 'MIT', present: false, configured: false };
    const quick = { ...model, name: 'quick', suggested: true };
    const large = { ...model, name: 'large', suggested: false };
    const old = { ...model, name: 'from an older hone' };
    assert.deepEqual(bySuggestion([large, quick, old]), { first: [quick, old], others: [large] });
});

test('a file from the disk is known by the name that hone gives it', () => {
    assert.equal(addedModel('{"name":"smollm2-135m","path":"/m.gguf"}'), 'smollm2-135m');
    assert.equal(addedModel('{"note":"copying"}'), undefined);
});

test('a download takes proxy and mirror of the editor, unless the environment has them', () => {
    const route = { proxy: 'http://proxy:3128', mirror: 'https://mirror.example' };
    assert.deepEqual(downloadEnvironment({ PATH: '/bin' }, route), {
        PATH: '/bin',
        HTTPS_PROXY: 'http://proxy:3128',
        HF_ENDPOINT: 'https://mirror.example',
    });
    const own = { https_proxy: 'http://mine', HF_ENDPOINT: 'https://own' };
    assert.deepEqual(downloadEnvironment(own, route), own);
    assert.deepEqual(downloadEnvironment({}, { proxy: '', mirror: '' }), {});
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
