/**
 * Returns a text of which VS Code makes no links. In a notification `[text](address)` is one, and
 * a click on `command:…` runs a command. A name in the text may be a stranger's.
 */
export function withoutLinks(text: string): string {
    return text.replaceAll('](', ']\u200B(');
}
