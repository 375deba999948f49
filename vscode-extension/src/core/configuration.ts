// The server's own settings, and which of them have to be sent to it.

import currentNames from './currentNames.json';

/** Values by their key in config.toml, such as `completion.max_tokens`. */
export type Values = Readonly<Record<string, unknown>>;

/** One `hone config set`. Without a value, the key goes back to its default. */
export interface ServerChange {
    key: string;
    value?: unknown;
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
    return [...changed.map(([key, value]) => ({ key, value })), ...removed.map((key) => ({ key }))];
}

/** Runs `hone` with these arguments, and returns what it prints. */
type Ask = (args: readonly string[]) => Promise<string>;

/**
 * Brings config.toml up to date with what is set in the editor. Returns whether the server needs a
 * restart for it.
 */
export async function send(ask: Ask, set: Values, before: Values): Promise<boolean> {
    if (Object.keys({ ...set, ...before }).length === 0) return false;
    // Settings with an old name may be among those that only experiments need.
    const file: unknown = JSON.parse(await ask(['config', 'get', '--all', '--json']));
    let needsRestart = false;
    for (const { key, value } of changes(set, before, file)) {
        const text = value === undefined ? [] : [JSON.stringify(value)];
        const answer = JSON.parse(await ask(['config', 'set', key, ...text, '--json']));
        needsRestart ||= (answer as { restart: boolean }).restart;
    }
    return needsRestart;
}

/** Lists are compared by their elements. */
function isSame(one: unknown, other: unknown): boolean {
    return JSON.stringify(one) === JSON.stringify(other);
}

/** Looks up a dotted key in what `hone config get --json` prints, where tables are nested. */
function valueOf(file: unknown, key: string): unknown {
    return key.split('.').reduce((table, name) => (table as Values | undefined)?.[name], file);
}

/** Old names of settings, which may still stand in the user's settings, and those of today. */
const CURRENT_NAMES = new Map(Object.entries(currentNames));

export const oldNames: readonly string[] = [...CURRENT_NAMES.keys()];

/** The values under the names that the server has today. A value under such a name wins. */
export function underCurrentNames(values: Values): Values {
    const renamed = Object.entries(values).map(
        ([key, value]) => [CURRENT_NAMES.get(key) ?? key, value] as const,
    );
    const current = Object.entries(values).filter(([key]) => !CURRENT_NAMES.has(key));
    return Object.fromEntries([...renamed, ...current]);
}

/**
 * The server's keys in package.json. `scripts/settings.mjs` writes them after the extension's own,
 * and `currentNames.json`, from what the server says of its settings.
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
