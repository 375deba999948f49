// The setting `hone.languages`: in which languages there are offers.

export type LanguageSwitches = Readonly<Record<string, boolean>>;

const OTHERS = '*';

export function isOn(switches: LanguageSwitches, language: string): boolean {
    return switches[language] ?? switches[OTHERS] ?? true;
}

/** The setting with this language switched the other way. */
export function turned(switches: LanguageSwitches, language: string): LanguageSwitches {
    return { ...switches, [language]: !isOn(switches, language) };
}
