import assert from 'node:assert/strict';
import { test } from 'node:test';
import manifest from '../package.json';
import { changes, oldNames, send, serverKeys, underCurrentNames } from '../src/core/configuration';

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

test('a key that is no longer set gets its default back, and a key of the file alone stays', () => {
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
        for (const [name, { scope }] of Object.entries(properties)) {
            assert.equal(scope, 'machine', name);
        }
    }
});

test('a setting with an old name counts under the name of today, unless that is set too', () => {
    assert.deepEqual(underCurrentNames({ 'completion.temperature': 0.2 }), {
        'lab.temperature': 0.2,
    });
    const both = { 'completion.adaptive_debounce': false, 'completion.follow_rhythm': true };
    assert.deepEqual(underCurrentNames(both), { 'completion.adaptive_debounce': false });
    assert.ok(
        oldNames.every((key) => !serverKeys(manifest).includes(key)),
        'no old name is offered',
    );
});

/** A program with settings of its own, which it prints without the table `lab` unless asked. */
function program(settings: { lab: object }) {
    const run: string[] = [];
    const ask = async (args: readonly string[]): Promise<string> => {
        const [, command, key] = args;
        if (command === 'set') {
            run.push(args.join(' '));
            return JSON.stringify({ restart: key === 'model.threads' });
        }
        const { lab, ...shown } = settings;
        return JSON.stringify(args.includes('--all') ? { ...shown, lab } : shown);
    };
    return { ask, run };
}

test('what differs is set, and a restart is needed only if a setting says so', async () => {
    const { ask, run } = program({ ...FILE, lab: {} });
    assert.equal(await send(ask, { 'completion.max_tokens': 8 }, { 'privacy.ignore': [] }), false);
    assert.deepEqual(run, [
        'config set completion.max_tokens 8 --json',
        'config set privacy.ignore --json',
    ]);
    assert.equal(await send(ask, { 'model.threads': 2, 'privacy.ignore': [] }, {}), true);
});

// A setting of VS Code under an old name may stand for one of `lab`, which `hone config get` does
// not print by default. Every new connection then sent it again, although the server had it.
test('a setting that only experiments need is not sent again and again', async () => {
    const { ask, run } = program({ lab: { temperature: 0.2 } });
    await send(ask, underCurrentNames({ 'completion.temperature': 0.2 }), {});
    assert.deepEqual(run, []);
});

test('without settings nothing is asked', async () => {
    const ask = (): Promise<string> => assert.fail('nothing is to be sent');
    assert.equal(await send(ask, {}, {}), false);
});
