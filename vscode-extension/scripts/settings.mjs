// Writes the settings of `hone config schema` into package.json. With --check it only compares them.
// The program is `hone` in the folder HONE_BIN, or on PATH.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Commands or the extension's own settings change these, so they are not settings a second time. */
const CHANGED_ELSEWHERE = new Set([
    'model.name',
    'learning.enabled',
    'completion.enabled',
    'completion.languages',
]);

const file = join(dirname(fileURLToPath(import.meta.url)), '../package.json');
const schema = JSON.parse(
    execFileSync(join(process.env.HONE_BIN ?? '', 'hone'), ['config', 'schema', '--json'], {
        encoding: 'utf8',
    }),
);
const manifest = JSON.parse(readFileSync(file, 'utf8'));
const [own] = manifest.contributes.configuration;
manifest.contributes.configuration = [
    own,
    ...Object.entries(schema.properties)
        .map(section)
        .filter(({ properties }) => Object.keys(properties).length > 0),
];

const text = `${JSON.stringify(manifest, null, 2)}\n`;
if (process.argv.includes('--check')) {
    if (text !== readFileSync(file, 'utf8'))
        throw new Error(`${file} differs from \`hone config schema\`; run \`npm run settings\``);
} else {
    writeFileSync(file, text);
}

/** The settings of a table of config.toml. A table inside it, such as PPO's parameters, is left out. */
function section([table, { properties }]) {
    const settings = Object.entries(properties).filter(
        ([name, { type }]) => type !== 'object' && !CHANGED_ELSEWHERE.has(`${table}.${name}`),
    );
    return {
        title: table[0].toUpperCase() + table.slice(1),
        properties: Object.fromEntries(
            settings.map(([name, property]) => [`hone.${table}.${name}`, setting(property)]),
        ),
    };
}

function setting({
    type,
    oneOf,
    items,
    default: default_,
    minimum,
    maximum,
    description,
    'x-restart': restart,
}) {
    const meaning = description.replaceAll('\n', ' ');
    return {
        // A setting without a type is a choice, and each choice has its own description.
        type: type ?? 'string',
        ...(oneOf !== undefined && {
            enum: oneOf.map((choice) => choice.const),
            enumDescriptions: oneOf.map((choice) => choice.description.replaceAll('\n', ' ')),
        }),
        ...(items !== undefined && { items }),
        default: default_,
        ...(minimum !== undefined && { minimum }),
        ...(maximum !== undefined && { maximum }),
        // One daemon serves all windows of a machine, so the settings belong to the machine.
        scope: 'machine',
        markdownDescription: restart ? `${meaning} Needs a restart of the server.` : meaning,
    };
}
