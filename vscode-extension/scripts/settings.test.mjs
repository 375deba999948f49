import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SCRIPTS = dirname(fileURLToPath(import.meta.url));
const OWN = { title: 'Hone', properties: { 'hone.enabled': { type: 'boolean' } } };

/** Settings as `hone config get --schema` describes them. */
const WAIT = { description: 'How long\nit waits.', type: 'integer', minimum: 1, default: 5 };
const KIND = { description: 'Which.', oneOf: [{ const: 'a', description: 'The\nfirst.' }] };

/** A schema with these settings in the table `gate`, and a table in it. */
function schema(gate) {
    const deep = { type: 'object', properties: { rate: WAIT } };
    return { gate: { properties: { ...gate, deep } } };
}

/** A copy of the scripts in a folder of its own, with a program that prints schemas. */
function extension(t) {
    const folder = mkdtempSync(join(tmpdir(), 'hone-settings-'));
    t.after(() => rmSync(folder, { recursive: true }));
    cpSync(SCRIPTS, join(folder, 'scripts'), { recursive: true });
    const write = (name, content) => writeFileSync(join(folder, name), JSON.stringify(content));
    write('package.json', { contributes: { configuration: [OWN] } });
    const program = `#!/bin/sh
case "$*" in
    'config get --schema') cat '${folder}/schema' ;;
esac`;
    writeFileSync(join(folder, 'hone'), program, { mode: 0o755 });
    return {
        serverHas: (gate) => write('schema', { properties: schema(gate) }),
        settings: (...args) =>
            spawnSync(process.execPath, [join(folder, 'scripts/settings.mjs'), ...args], {
                env: { ...process.env, HONE_BIN: folder },
                encoding: 'utf8',
            }),
        read: (name) => JSON.parse(readFileSync(join(folder, name), 'utf8')),
    };
}

test('the settings of the server are written after the extension’s own', (t) => {
    const { serverHas, settings, read } = extension(t);
    serverHas({ wait: { ...WAIT, 'x-restart': true }, kind: { ...KIND, default: 'a' } });
    assert.equal(settings().status, 0);
    const gate = {
        title: 'Gate',
        properties: {
            'hone.gate.wait': {
                type: 'integer',
                default: 5,
                minimum: 1,
                scope: 'machine',
                markdownDescription: 'How long it waits. Needs a restart of the server.',
            },
            'hone.gate.kind': {
                type: 'string',
                enum: ['a'],
                enumDescriptions: ['The first.'],
                default: 'a',
                scope: 'machine',
                markdownDescription: 'Which.',
            },
        },
    };
    assert.deepEqual(read('package.json').contributes.configuration, [OWN, gate]);
});

test('the check fails as soon as the server has other settings', (t) => {
    const { serverHas, settings } = extension(t);
    const problem = () => /Error: (.*) differs/.exec(settings('--check').stderr)?.[1];
    serverHas({ wait: WAIT });
    assert.equal(problem(), 'package.json');
    settings();
    assert.equal(problem(), undefined);
    serverHas({ wait: { ...WAIT, default: 6 } });
    assert.equal(problem(), 'package.json');
    settings();
    assert.equal(settings('--check').status, 0);
});
