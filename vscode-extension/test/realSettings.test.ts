// Sends every setting of the manifest to the real program, which is `hone` in the folder HONE_BIN,
// or the one that cargo has built.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import manifest from '../package.json';
import { changes, send, type Values } from '../src/core/configuration';

const HONE_BIN = process.env['HONE_BIN'];
const PROGRAM = join(HONE_BIN ?? join(process.cwd(), '../target/release'), 'hone');
const skip = HONE_BIN || existsSync(PROGRAM) ? false : `${PROGRAM} is not there`;

/** What the manifest says of a setting. */
interface Setting {
    type: string | string[];
    default: unknown;
    enum?: string[];
    minimum?: number;
    maximum?: number;
}

const [, ...sections] = manifest.contributes.configuration;
const SETTINGS = sections.flatMap(({ properties }) =>
    Object.entries(properties as unknown as Record<string, Setting>).map(
        ([name, setting]) => [name.replace(/^hone\./, ''), setting] as const,
    ),
);

/** Settings whose values are names that the program knows. */
const NAMES: Record<string, string> = { 'completion.next_edit_model': 'sweep-next-edit-0.5b' };

/** A value that the setting may have and that is not its default. */
function another(key: string, setting: Setting): unknown {
    if (key in NAMES) return NAMES[key];
    const [type] = [setting.type].flat();
    switch (type) {
        case 'boolean':
            return !setting.default;
        case 'array':
            return ['*.sql', 'a "quoted" name'];
        case 'string':
            return setting.enum?.find((choice) => choice !== setting.default) ?? 'localhost:9092';
        case 'integer':
            return Math.max(setting.minimum ?? 0, Number(setting.default ?? 0) - 1) + 3;
        default:
            return (Number(setting.default) + (setting.maximum ?? 1)) / 2;
    }
}

/** The program with a home of its own. */
function real(t: TestContext) {
    const home = mkdtempSync(join(tmpdir(), 'hone-set-'));
    t.after(() => rmSync(home, { recursive: true }));
    const env = { ...process.env, HONE_HOME: home };
    const ask = async (args: readonly string[]): Promise<string> =>
        execFileSync(PROGRAM, args, { env, encoding: 'utf8', stdio: 'pipe' });
    const isInFile = async (set: Values): Promise<void> => {
        const file = JSON.parse(await ask(['config', 'get', '--all', '--json'])) as unknown;
        assert.deepEqual(changes(set, {}, file), []);
    };
    return { ask, isInFile };
}

test('every setting reaches the real program as it was set', { skip }, async (t) => {
    const { ask, isInFile } = real(t);
    const types = new Set(SETTINGS.map(([, { type }]) => String(type)));
    for (const type of ['boolean', 'integer', 'integer,null', 'number', 'string,null', 'array']) {
        assert.ok(types.has(type), type);
    }
    const set = Object.fromEntries(SETTINGS.map(([key, setting]) => [key, another(key, setting)]));
    const sent = await send(ask, set, {});
    assert.deepEqual(sent.refusals, []);
    await isInFile(set);

    const unset = Object.fromEntries(
        SETTINGS.filter(([, { type }]) => type.includes('null')).map(([key]) => [key, null]),
    );
    assert.deepEqual((await send(ask, unset, set)).refusals, []);
    await isInFile(Object.fromEntries(SETTINGS.map(([key, setting]) => [key, setting.default])));
});

test('the real program takes what comes behind a value that it refuses', { skip }, async (t) => {
    const { ask, isInFile } = real(t);
    const ignored = { 'privacy.ignore': ['*.key'] };
    const { refusals } = await send(ask, { 'model.threads': 999, ...ignored }, {});
    assert.equal(refusals.length, 1);
    await isInFile(ignored);
});
