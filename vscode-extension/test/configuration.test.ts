import assert from 'node:assert/strict';
import { test } from 'node:test';
import manifest from '../package.json';
import { changes, send, serverKeys } from '../src/core/configuration';

const FILE = {
    completion: { multiline: 'invoked' },
    api: { port: 600 },
    privacy: { retention_days: 32, ignore: ['*.sql'] },
};

test('only values that differ from the file are sent', () => {
    assert.deepEqual(changes({}, {}, FILE), []);
    assert.deepEqual(changes({ 'privacy.retention_days': 32 }, {}, FILE), []);
    assert.deepEqual(changes({ 'privacy.retention_days': 8, 'api.port': 600 }, {}, FILE), [
        { key: 'privacy.retention_days', value: 8 },
    ]);
    assert.deepEqual(
        changes({ 'privacy.ignore': ['*.sql'] }, {}, FILE),
        [],
        'a list by what is in it',
    );
    assert.deepEqual(changes({ 'model.threads': 2 }, {}, {}), [{ key: 'model.threads', value: 2 }]);
    const unset = { 'completion.context_chars': null };
    for (const file of [{}, { completion: { context_chars: null } }]) {
        assert.deepEqual(changes(unset, {}, file), [], 'no value is no value');
    }
    assert.deepEqual(changes(unset, {}, { completion: { context_chars: 900 } }), [
        { key: 'completion.context_chars' },
    ]);
});

test('a key that is no longer set gets its default back, and a key of the file alone stays', () => {
    const before = { 'privacy.retention_days': 8 };
    assert.deepEqual(changes({}, before, FILE), [{ key: 'privacy.retention_days' }]);
    assert.deepEqual(changes({ 'privacy.retention_days': 32 }, before, FILE), []);
});

test('the server’s settings belong to the machine, and no command changes any of them', () => {
    const keys = serverKeys(manifest);
    assert.ok(keys.includes('privacy.retention_days'));
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
        for (const [name, { scope }] of Object.entries(properties)) {
            assert.equal(scope, 'machine', name);
        }
    }
});

/** A program with settings of its own, which it prints. It refuses to change some of them. */
function program(settings: object, refused: string[] = []) {
    const run: string[] = [];
    const ask = async (args: readonly string[]): Promise<string> => {
        const [, command, key = ''] = args;
        if (command === 'set') {
            run.push(args.join(' '));
            if (refused.includes(key)) throw new Error(`${key} must be otherwise`);
            return JSON.stringify({ restart: key === 'model.threads' });
        }
        return JSON.stringify(settings);
    };
    return { ask, run };
}

test('what differs is set, and a restart is needed only if a setting says so', async () => {
    const { ask, run } = program(FILE);
    const set = { 'privacy.retention_days': 8 };
    assert.deepEqual(await send(ask, set, { 'privacy.ignore': [] }), {
        needsRestart: false,
        refusals: [],
        values: set,
    });
    assert.deepEqual(run, [
        'config set privacy.retention_days 8 --json',
        'config set privacy.ignore --json',
    ]);
    const both = await send(ask, { 'model.threads': 2, 'privacy.ignore': [] }, {});
    assert.equal(both.needsRestart, true);
});

test('a value that is refused keeps no other one from the server', async () => {
    const { ask, run } = program(FILE, ['privacy.retention_days', 'team.epsilon_limit']);
    const set = { 'privacy.retention_days': 999, 'model.threads': 2, 'privacy.ignore': ['*.key'] };
    const before = { 'team.epsilon_limit': 0.01, 'api.port': 5 };
    const sent = await send(ask, set, before);
    assert.deepEqual(run.slice(1), [
        'config set model.threads 2 --json',
        'config set privacy.ignore ["*.key"] --json',
        'config set team.epsilon_limit --json',
        'config set api.port --json',
    ]);
    assert.equal(sent.needsRestart, true);
    assert.deepEqual(sent.refusals, [
        'privacy.retention_days must be otherwise',
        'team.epsilon_limit must be otherwise',
    ]);
    assert.deepEqual(
        sent.values,
        { ...set, 'team.epsilon_limit': 0.01 },
        'its default is owed still',
    );
});

test('a text is sent as it is, and everything else as JSON', async () => {
    const { ask, run } = program({});
    await send(ask, { 'team.address': 'a:1', 'model.gpu_layers': null, 'api.enabled': false }, {});
    assert.deepEqual(run, [
        'config set team.address a:1 --json',
        'config set api.enabled false --json',
    ]);
});

test('without settings nothing is asked', async () => {
    const ask = (): Promise<string> => assert.fail('nothing is to be sent');
    assert.deepEqual(await send(ask, {}, {}), { needsRestart: false, refusals: [], values: {} });
});
