// The settings that are the server's: what of them has to be told to it.

/** By key of config.toml, such as `completion.max_tokens`. */
export type Values = Readonly<Record<string, unknown>>;

/** One `hone config set`; without a value the key goes back to its default. */
export interface ServerChange {
    key: string;
    value?: unknown;
}

/**
 * What the user has set here wins over config.toml; what is not set here is the file's alone,
 * but for what was set until now (`before`): that goes.
 */
export function changes(set: Values, before: Values, file: unknown): ServerChange[] {
    const told = Object.entries(set).filter(([key, value]) => !isSame(valueOf(file, key), value));
    const gone = Object.keys(before).filter((key) => !(key in set));
    return [...told.map(([key, value]) => ({ key, value })), ...gone.map((key) => ({ key }))];
}

/** Lists are compared by what is in them. */
function isSame(one: unknown, other: unknown): boolean {
    return JSON.stringify(one) === JSON.stringify(other);
}

/** `hone config get --json` holds a table in a table. */
function valueOf(file: unknown, key: string): unknown {
    return key.split('.').reduce((table, name) => (table as Values | undefined)?.[name], file);
}

/** The keys that `scripts/settings.mjs` has put into package.json, behind the extension's own. */
export function serverKeys(manifest: unknown): string[] {
    const { contributes } = manifest as { contributes: { configuration: { properties: object }[] } };
    const [, ...sections] = contributes.configuration;
    return sections.flatMap(({ properties }) => Object.keys(properties)).map((name) => name.replace(/^hone\./, ''));
}
