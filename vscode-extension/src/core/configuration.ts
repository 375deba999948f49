// The server's own settings, and which of them have to be sent to it.

/** Values by their key in config.toml, such as `completion.multiline`. */
export type Values = Readonly<Record<string, unknown>>;

/** One `hone config set`. Without a value, the key goes back to its default. */
export interface ServerChange {
    key: string;
    value?: unknown;
}

/** What came of sending the settings. */
export interface Sent {
    /** Whether the server needs a restart for them. */
    needsRestart: boolean;
    /** What the server says of each value that it does not take. */
    refusals: string[];
    /** What the next call has to know as what was set before. */
    values: Values;
}

/**
 * What has to change in config.toml. A value that the user has set in the editor wins over the
 * file. A key that is not set in the editor belongs to the file alone. A key that was set in the
 * editor before (`before`) and is not any more goes back to its default.
 */
export function changes(set: Values, before: Values, file: unknown): ServerChange[] {
    const changed = Object.entries(set).filter(
        ([key, value]) => !isSame(valueOf(file, key), value),
    );
    const removed = Object.keys(before).filter((key) => !(key in set));
    return [...changed.map(([key, value]) => change(key, value)), ...removed.map(defaultOf)];
}

/** `null` is the editor's word for a setting without a value, and the server has none for it. */
function change(key: string, value: unknown): ServerChange {
    return value === null ? defaultOf(key) : { key, value };
}

function defaultOf(key: string): ServerChange {
    return { key };
}

/** Runs `hone` with these arguments, and returns what it prints. */
type Ask = (args: readonly string[]) => Promise<string>;

/**
 * Brings config.toml up to date with what is set in the editor. A value that the server refuses
 * does not keep the others from it.
 */
export async function send(ask: Ask, set: Values, before: Values): Promise<Sent> {
    const sent = { needsRestart: false, refusals: [] as string[], values: { ...set } };
    if (Object.keys({ ...set, ...before }).length === 0) return sent;
    const file: unknown = JSON.parse(await ask(['config', 'get', '--json']));
    for (const { key, value } of changes(set, before, file)) {
        try {
            const answer = JSON.parse(await ask(['config', 'set', key, ...words(value), '--json']));
            sent.needsRestart ||= (answer as { restart: boolean }).restart;
        } catch (error) {
            sent.refusals.push((error as Error).message);
            // A default that was not taken has to be sent again.
            if (!(key in set)) sent.values[key] = before[key];
        }
    }
    return sent;
}

/** The value as `hone config set` reads it: a text as it is, and everything else as JSON. */
function words(value: unknown): string[] {
    if (value === undefined) return [];
    return [typeof value === 'string' ? value : JSON.stringify(value)];
}

/** Lists are compared by their elements. A setting without a value may be left out or `null`. */
function isSame(one: unknown, other: unknown): boolean {
    return JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
}

/** Looks up a dotted key in what `hone config get --json` prints, where tables are nested. */
function valueOf(file: unknown, key: string): unknown {
    return key.split('.').reduce((table, name) => (table as Values | undefined)?.[name], file);
}

/**
 * The server's keys in package.json. `scripts/settings.mjs` writes them after the extension's own,
 * from the server's schema of its settings.
 */
export function serverKeys(manifest: unknown): string[] {
    const { contributes } = manifest as {
        contributes: { configuration: { properties: object }[] };
    };
    const [, ...sections] = contributes.configuration;
    return sections
        .flatMap(({ properties }) => Object.keys(properties))
        .map((name) => name.replace(/^hone\./, ''));
}
