// The settings that VS Code shows, made from what `hone config get --schema` prints.

/** Commands or the extension's own settings change these, so they are not shown a second time. */
const CHANGED_ELSEWHERE = new Set([
    'model.name',
    'learning.enabled',
    'completion.enabled',
    'completion.languages',
]);

/** The sections of VS Code's settings, one for each table of config.toml that has settings. */
export function sections(schema) {
    const all = Object.entries(schema.properties).map(section);
    return all.filter(({ properties }) => Object.keys(properties).length > 0);
}

/** The settings of a table. Another table inside it, such as PPO's parameters, is left out. */
function section([table, { properties }]) {
    const shown = Object.entries(properties).filter(
        ([name, { type }]) => type !== 'object' && !CHANGED_ELSEWHERE.has(`${table}.${name}`),
    );
    return {
        title: table[0].toUpperCase() + table.slice(1),
        properties: Object.fromEntries(
            shown.map(([name, schema]) => [`hone.${table}.${name}`, setting(schema)]),
        ),
    };
}

function setting(schema) {
    const { type, oneOf, items, minimum, maximum } = schema;
    const meaning = inOneLine(schema.description);
    return {
        // A setting without a type is a choice, and each choice has its own description.
        type: type ?? 'string',
        ...(oneOf !== undefined && {
            enum: oneOf.map((choice) => choice.const),
            enumDescriptions: oneOf.map((choice) => inOneLine(choice.description)),
        }),
        ...(items !== undefined && { items }),
        default: schema.default,
        ...(minimum !== undefined && { minimum }),
        ...(maximum !== undefined && { maximum }),
        // One daemon serves all windows of a machine, so the settings belong to the machine.
        scope: 'machine',
        markdownDescription: schema['x-restart']
            ? `${meaning} Needs a restart of the server.`
            : meaning,
    };
}

function inOneLine(text) {
    return text.replaceAll('\n', ' ');
}
