import assert from 'node:assert/strict';
import { test } from 'node:test';
import manifest from '../package.json';
import { changes, oldKeys, serverKeys, underTodaysNames } from '../src/core/configuration';

const FILE = {
    completion: { max_tokens: 32, temperature: 0 },
    daemon: { idle_exit_s: 600 },
    privacy: { ignore: ['*.sql'] },
};

test('only values that differ from the file are sent', () => {
    assert.deepEqual(changes({}, {}, FILE), []);
    assert.deepEqual(changes({ 'completion.max_tokens': 32 }, {}, FILE), []);
    assert.deepEqual(changes({ 'completion.max_tokens': 8, 'daemon.idle_exit_s': 600 }, {}, FILE), [
        { key: 'completion.max_tokens', value: 8 },
    ]);
    assert.deepEqual(
        changes({ 'privacy.ignore': ['*.sql'] }, {}, FILE),
        [],
        'a list by what is in it',
    );
    assert.deepEqual(changes({ 'model.threads': 2 }, {}, {}), [{ key: 'model.threads', value: 2 }]);
});

test('a key that is not set any more goes back to its default, and a key that only the file has stays', () => {
    const before = { 'completion.max_tokens': 8 };
    assert.deepEqual(changes({}, before, FILE), [{ key: 'completion.max_tokens' }]);
    assert.deepEqual(changes({ 'completion.max_tokens': 32 }, before, FILE), []);
});

test('the server’s settings belong to the machine, and no command changes any of them', () => {
    const keys = serverKeys(manifest);
    assert.ok(keys.includes('completion.max_tokens'));
    for (const key of [
        'enabled',
        'languages',
        'path',
        'model.name',
        'learning.enabled',
        'completion.enabled',
        'completion.languages',
    ]) {
        assert.ok(!keys.includes(key), key);
    }
    const [, ...sections] = manifest.contributes.configuration as {
        properties: Record<string, { scope: string }>;
    }[];
    for (const { properties } of sections) {
        for (const [name, { scope }] of Object.entries(properties))
            assert.equal(scope, 'machine', name);
    }
});

test('a setting with an old name counts under the name of today, unless that is set too', () => {
    assert.deepEqual(underTodaysNames({ 'completion.temperature': 0.2 }), {
        'lab.temperature': 0.2,
    });
    const both = { 'completion.adaptive_debounce': false, 'completion.follow_rhythm': true };
    assert.deepEqual(underTodaysNames(both), { 'completion.adaptive_debounce': false });
    assert.ok(
        oldKeys.every((key) => !serverKeys(manifest).includes(key)),
        'no old name is offered',
    );
});
