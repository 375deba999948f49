// Writes what `hone config schema` says of the settings into package.json, and their old names into
// src/core/currentNames.json. With --check it only compares both.
//
// The program is `hone` in the folder HONE_BIN, or on PATH.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { currentNames, sections } from './schema.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const files = { 'package.json': manifest(), 'src/core/currentNames.json': renamed() };

for (const [name, content] of Object.entries(files)) {
    const file = join(root, name);
    const text = `${JSON.stringify(content, null, 2)}\n`;
    if (!process.argv.includes('--check')) {
        writeFileSync(file, text);
    } else if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
        throw new Error(`${name} differs from \`hone config schema\`; run \`npm run settings\``);
    }
}

/** The manifest, with the server's settings after the extension's own ones. */
function manifest() {
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const [own] = manifest.contributes.configuration;
    manifest.contributes.configuration = [own, ...sections(schema())];
    return manifest;
}

/** The settings that have old names. Some of them only experiments need today. */
function renamed() {
    return currentNames(schema('--all'));
}

function schema(...options) {
    const program = join(process.env.HONE_BIN ?? '', 'hone');
    const args = ['config', 'schema', '--json', ...options];
    return JSON.parse(execFileSync(program, args, { encoding: 'utf8' }));
}
