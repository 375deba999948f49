// The settings `hone.enabled` and `hone.languages`: whether there are offers, and in which
// languages. A workspace only switches them off, because its settings may be a stranger's.

export type LanguageSwitches = Readonly<Record<string, boolean>>;

/** The values of a setting, as the editor knows them. */
export interface Values<T> {
    defaultValue?: T;
    globalValue?: T;
    workspaceValue?: T;
}

type Place = 'user' | 'workspace';

/** What a setting becomes in one place. */
export interface Change<T> {
    place: Place;
    value: T;
}

const OTHERS = '*';

export function isEnabled(found: Values<boolean>): boolean {
    return ofUser(found) && found.workspaceValue !== false;
}

export function isLanguageOn(found: Values<LanguageSwitches>, language: string): boolean {
    const { user, workspace } = switches(found);
    return isOn(user, language) && isOn(workspace, language);
}

/** `hone.enabled` switched the other way. */
export function toggled(found: Values<boolean>): Change<boolean>[] {
    const value = !isEnabled(found);
    const off = { user: !ofUser(found), workspace: found.workspaceValue === false };
    return places(found, off).map((place) => ({ place, value }));
}

/** `hone.languages` with this language switched the other way. */
export function languageToggled(
    found: Values<LanguageSwitches>,
    language: string,
): Change<LanguageSwitches>[] {
    const value = !isLanguageOn(found, language);
    const { user, workspace } = switches(found);
    const off = { user: !isOn(user, language), workspace: !isOn(workspace, language) };
    const at = { user, workspace };
    return places(found, off).map((place) => ({
        place,
        value: { ...at[place], [language]: value },
    }));
}

/**
 * Where a setting has to change: in each place that has offers off, or else where it was set,
 * because a change elsewhere would have no effect.
 */
function places(found: Values<unknown>, off: Record<Place, boolean>): Place[] {
    const all: Place[] = ['user', 'workspace'];
    const thatAreOff = all.filter((place) => off[place]);
    if (thatAreOff.length > 0) return thatAreOff;
    return [found.workspaceValue === undefined ? 'user' : 'workspace'];
}

function ofUser(found: Values<boolean>): boolean {
    return found.globalValue ?? found.defaultValue ?? true;
}

function switches(found: Values<LanguageSwitches>): Record<Place, LanguageSwitches> {
    return {
        user: { ...found.defaultValue, ...found.globalValue },
        workspace: found.workspaceValue ?? {},
    };
}

function isOn(switches: LanguageSwitches, language: string): boolean {
    return switches[language] ?? switches[OTHERS] ?? true;
}
