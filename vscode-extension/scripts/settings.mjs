// Writes the settings that `hone config get --schema` prints into package.json. With --check it
// only compares them.
//
// The program is `hone` in the folder HONE_BIN, or on PATH.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sections } from './schema.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const file = join(root, 'package.json');
const before = readFileSync(file, 'utf8');
const after = `${JSON.stringify(manifest(JSON.parse(before)), null, 2)}\n`;
if (!process.argv.includes('--check')) {
    writeFileSync(file, after);
} else if (before !== after) {
    throw new Error('package.json differs from `hone config get --schema`; run `npm run settings`');
}

/** The manifest, with the server's settings after the extension's own ones. */
function manifest(manifest) {
    const [own] = manifest.contributes.configuration;
    manifest.contributes.configuration = [own, ...sections(schema())];
    return manifest;
}

function schema() {
    const program = join(process.env.HONE_BIN ?? '', 'hone');
    const args = ['config', 'get', '--schema'];
    return JSON.parse(execFileSync(program, args, { encoding: 'utf8' }));
}
