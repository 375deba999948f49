// Writes the settings of `hone config schema` into package.json; with --check says whether they are
// there. The program is `hone` in the folder HONE_BIN, or on PATH.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What commands or a setting of the extension's own change: no two places may disagree. */
const CHANGED_ELSEWHERE = new Set(['model.name', 'learning.enabled', 'completion.enabled', 'completion.languages']);

const file = join(dirname(fileURLToPath(import.meta.url)), '../package.json');
const schema = JSON.parse(execFileSync(join(process.env.HONE_BIN ?? '', 'hone'), ['config', 'schema', '--json'], { encoding: 'utf8' }));
const manifest = JSON.parse(readFileSync(file, 'utf8'));
const [own] = manifest.contributes.configuration;
manifest.contributes.configuration = [own, ...Object.entries(schema.properties).map(section).filter(({ properties }) => Object.keys(properties).length > 0)];

const text = `${JSON.stringify(manifest, null, 2)}\n`;
if (process.argv.includes('--check')) {
    if (text !== readFileSync(file, 'utf8')) throw new Error(`${file}: not the settings of \`hone config schema\`; run \`npm run settings\``);
} else {
    writeFileSync(file, text);
}

/** A table of config.toml; tables in it, such as PPO's parameters, are for the file alone. */
function section([table, { properties }]) {
    const settings = Object.entries(properties).filter(([name, { type }]) => type !== 'object' && !CHANGED_ELSEWHERE.has(`${table}.${name}`));
    return {
        title: table[0].toUpperCase() + table.slice(1),
        properties: Object.fromEntries(settings.map(([name, property]) => [`hone.${table}.${name}`, setting(property)])),
    };
}

function setting({ type, oneOf, items, default: default_, minimum, maximum, description, 'x-restart': restart }) {
    const meaning = description.replaceAll('\n', ' ');
    return {
        // A choice: each has its own description.
        type: type ?? 'string',
        ...(oneOf !== undefined && { enum: oneOf.map((choice) => choice.const), enumDescriptions: oneOf.map((choice) => choice.description.replaceAll('\n', ' ')) }),
        ...(items !== undefined && { items }),
        default: default_,
        ...(minimum !== undefined && { minimum }),
        ...(maximum !== undefined && { maximum }),
        // One daemon serves all windows of a machine.
        scope: 'machine',
        markdownDescription: restart ? `${meaning} Needs a restart of the server.` : meaning,
    };
}
