// What this window knows about the next edit: where it is while the document changes, whether it
// may still be made, what is said of it, and which key goes to it. Nothing here knows VS Code.

/** An edit as the server offers it. Offsets count UTF-16 units. */
export interface NextEdit {
    id: string;
    uri: string;
    start: number;
    end: number;
    /** What must stand there for the edit to be made. */
    old: string;
    new: string;
}

/** A place in a file that is not open. The edit is asked for once it is. */
export interface Elsewhere {
    path: string;
    /** It counts from 0. */
    line: number;
}

/** The place that an answer without an edit names instead, if it does. */
export function elsewhereOf(answer: unknown): Elsewhere | undefined {
    const { reason, path, line } =
        (answer as { _hone?: { reason?: string; path?: unknown; line?: unknown } } | null)?._hone ??
        {};
    const isThere = reason === 'in_another_file';
    if (!isThere || typeof path !== 'string' || typeof line !== 'number') return undefined;
    return { path, line: line - 1 };
}

/** The last part of a path or an address. */
export function fileName(path: string): string {
    return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

/** One change of a document, as the editor reports it. */
export interface Change {
    rangeOffset: number;
    rangeLength: number;
    text: string;
}

/** A longer text is cut on screen. */
const SHOWN_CHARS_MAX = 160;

/** The edit after the changes of one event. Undefined if one of them touches its place. */
export function moved(edit: NextEdit, changes: readonly Change[]): NextEdit | undefined {
    let shift = 0;
    // The offsets of an event's changes are all meant for the text before it.
    for (const { rangeOffset, rangeLength, text } of changes) {
        const end = rangeOffset + rangeLength;
        const isInsertionAtStart = end === edit.start && rangeLength === 0;
        if (end <= edit.start && !isInsertionAtStart) shift += text.length - rangeLength;
        else if (rangeOffset < edit.end || rangeOffset === edit.start) return undefined;
    }
    return { ...edit, start: edit.start + shift, end: edit.end + shift };
}

/** Where the edit is, seen from the cursor, in words. */
export function direction(cursorLine: number, line: number, file: string | undefined): string {
    if (file !== undefined) return `→ ${file}:${line + 1}`;
    if (cursorLine === line) return '→ this line';
    const lines = Math.abs(line - cursorLine);
    const side = line > cursorLine ? 'below' : 'above';
    return `→ ${lines} ${lines === 1 ? 'line' : 'lines'} ${side}`;
}

/**
 * Whether whole lines are inserted below another one. They are drawn behind that one, because in
 * front of the next line they would look like a part of it.
 */
export function insertsBelow(edit: Pick<NextEdit, 'old' | 'new'>, column: number): boolean {
    return edit.old === '' && column === 0 && edit.new.endsWith('\n');
}

/**
 * The new text as one line, because a decoration has only one. Whole lines that are drawn behind
 * another one begin with the sign of a line break.
 */
export function onOneLine(text: string, isBelow = false): string {
    const lines = text.replace(/\r?\n$/, '').split(/\r?\n/);
    if (isBelow) lines.unshift('');
    const joined = lines.map((line, at) => (at === 0 ? line : line.trim())).join(' ⏎ ');
    const shown = [...joined];
    const cut = shown.length > SHOWN_CHARS_MAX;
    return cut ? `${shown.slice(0, SHOWN_CHARS_MAX).join('')}…` : joined;
}

/**
 * Whether Tab indents here, so that it must not go to an edit: nothing but blanks is before the
 * cursor.
 */
export function tabIndents(beforeCursor: string): boolean {
    return beforeCursor.trim() === '';
}

/**
 * The key that goes to a next edit, in words. `platform` is that of the user's window, and is
 * undefined if that is on a machine that this one does not know.
 */
export function keyOf(tabGoes: boolean, platform: string | undefined): string {
    if (tabGoes) return 'Tab';
    if (platform === undefined) return 'Alt+N, on a Mac ⌃⌥N';
    return platform === 'darwin' ? '⌃⌥N' : 'Alt+N';
}
