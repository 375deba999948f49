// The server's own settings, and which of them have to be sent to it.

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

/** Lists are compared by their elements. */
function isSame(one: unknown, other: unknown): boolean {
    return JSON.stringify(one) === JSON.stringify(other);
}

/** Looks up a dotted key in what `hone config get --json` prints, where tables are nested. */
function valueOf(file: unknown, key: string): unknown {
    return key.split('.').reduce((table, name) => (table as Values | undefined)?.[name], file);
}

/** Settings that had another name before, or that only experiments need: old names and new ones. */
const RENAMED = new Map([
    ['completion.follow_rhythm', 'completion.adaptive_debounce'],
    ['completion.line_behind_middle', 'lab.line_behind_middle'],
    ['completion.prefix_chars', 'lab.prefix_chars'],
    ['completion.suffix_chars', 'lab.suffix_chars'],
    ['completion.temperature', 'lab.temperature'],
    ['completion.token_healing', 'lab.token_healing'],
    ['learning.replay_episodes', 'lab.replay_episodes'],
]);

/** The old names, which may still stand in the user's settings. */
export const oldKeys: readonly string[] = [...RENAMED.keys()];

/** The values under the names that the server has today. A value under such a name wins. */
export function underTodaysNames(values: Values): Values {
    const renamed = Object.entries(values).map(
        ([key, value]) => [RENAMED.get(key) ?? key, value] as const,
    );
    const todays = Object.entries(values).filter(([key]) => !RENAMED.has(key));
    return Object.fromEntries([...renamed, ...todays]);
}

/**
 * The server's keys in package.json. `scripts/settings.mjs` writes them after the extension's own.
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
