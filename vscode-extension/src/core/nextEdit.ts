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
    /** Whether the user has begun to make it by hand. */
    isBegun?: true;
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

/**
 * What is left of the edit after the changes of one event. A change at its place that agrees with
 * it, such as typing the new text, is a part of it, and `old` is then what stands there. Undefined
 * if the edit has been made, or if a change disagrees.
 */
export function rebased(edit: NextEdit, changes: readonly Change[]): NextEdit | undefined {
    const turned = changes.map((change) => turnedDown(edit, change) ?? change);
    const left = rebasedAsIs(edit, turned);
    const isTurned = turned.some((change, at) => change !== changes[at]);
    return left ?? (isTurned ? rebasedAsIs(edit, changes) : undefined);
}

/**
 * Who presses Enter at the end of the line above inserts a line where the edit inserts lines: a
 * line break before another one is the same text as a line break behind it.
 */
function turnedDown(edit: NextEdit, change: Change): Change | undefined {
    const lineBreak = change.text.match(/^\r?\n/)?.[0];
    if (lineBreak === undefined || edit.old !== '' || !edit.new.endsWith('\n')) return undefined;
    const isAbove = change.rangeOffset + lineBreak.length === edit.start;
    if (!isAbove || change.rangeLength > 0) return undefined;
    const text = change.text.slice(lineBreak.length) + lineBreak;
    return { rangeOffset: edit.start, rangeLength: 0, text };
}

function rebasedAsIs(edit: NextEdit, changes: readonly Change[]): NextEdit | undefined {
    let shift = 0;
    const inside: Change[] = [];
    // The offsets of an event's changes are all meant for the text before it.
    for (const change of changes) {
        const { rangeOffset, rangeLength, text } = change;
        const end = rangeOffset + rangeLength;
        const isInsertionAtStart = end === edit.start && rangeLength === 0;
        const isInsertionAtEnd = rangeOffset === edit.end && rangeLength === 0;
        if (end <= edit.start && !isInsertionAtStart) shift += text.length - rangeLength;
        else if (isInsertionAtEnd || (rangeOffset >= edit.start && end <= edit.end))
            inside.push(change);
        else if (rangeOffset < edit.end || rangeOffset === edit.start) return undefined;
    }
    const [start, end] = [edit.start + shift, edit.end + shift];
    if (inside.length === 0) return { ...edit, start, end };
    inside.sort((one, other) => other.rangeOffset - one.rangeOffset);
    const now = inside.reduce((text, { rangeOffset, rangeLength, text: comes }) => {
        const at = rangeOffset - edit.start;
        return text.slice(0, at) + comes + text.slice(at + rangeLength);
    }, edit.old);
    if (agrees(edit, now)) {
        return { ...edit, start, end: start + now.length, old: now, isBegun: true };
    }
    // A text behind the place is none of the edit's business, unless it is where the user types it.
    const isBehind = inside.every(({ rangeOffset }) => rangeOffset === edit.end);
    const stays = isBehind && edit.old !== '' && !edit.isBegun && now !== edit.new;
    return stays ? { ...edit, start, end } : undefined;
}

/**
 * Whether a text is on the way from the old text to the new one: the beginning and the end of the
 * new one, and between them what is left of that which goes.
 */
function agrees(edit: NextEdit, now: string): boolean {
    if (now === edit.new) return false;
    const gone = middle(edit.old, affixes(edit.old, edit.new));
    return gone.includes(middle(now, affixes(now, edit.new)));
}

/** The lengths of what two texts have in common at their start and at their end. */
function affixes(one: string, other: string): [head: number, tail: number] {
    const most = Math.min(one.length, other.length);
    let head = 0;
    while (head < most && one[head] === other[head]) head += 1;
    if (isCut(one, head) || isCut(other, head)) head -= 1;
    let tail = 0;
    while (tail < most - head && one.at(-1 - tail) === other.at(-1 - tail)) tail += 1;
    if (isCut(one, one.length - tail) || isCut(other, other.length - tail)) tail -= 1;
    return [head, tail];
}

/** Whether a character of two units would be cut there. */
function isCut(text: string, at: number): boolean {
    return at > 0 && (text.codePointAt(at - 1) ?? 0) > 0xffff;
}

function middle(text: string, [head, tail]: [number, number]): string {
    return text.slice(head, text.length - tail);
}

/** What is drawn of an edit: the text that goes, counted from its start, and what comes behind. */
export interface Preview {
    from: number;
    to: number;
    text: string;
}

const WORD_AT_END = /[\p{L}\p{M}\p{N}_$]*$/u;
const WORD_AT_START = /^[\p{L}\p{M}\p{N}_$]*/u;

/**
 * What is drawn of an edit, if these texts are before its place and behind it. What old and new
 * text share is left out, but of a word that changes the whole is drawn.
 */
export function previewOf(edit: NextEdit, before: string, behind: string): Preview {
    const shared = affixes(edit.old, edit.new);
    const [gone, comes] = [middle(edit.old, shared), middle(edit.new, shared)];
    const [from, to] = [shared[0], edit.old.length - shared[1]];
    if (gone === '') return { from, to, text: comes };
    if (`${gone}${comes}`.includes('\n')) {
        return { from: 0, to: edit.old.length, text: edit.new };
    }
    const word = (pattern: RegExp, text: string) => text.match(pattern)?.[0] ?? '';
    const isWord = (pattern: RegExp) => word(pattern, gone) !== '' || word(pattern, comes) !== '';
    const head = before + edit.old.slice(0, from);
    const tail = edit.old.slice(to) + behind;
    const left = isWord(WORD_AT_START) ? word(WORD_AT_END, head) : '';
    const right = isWord(WORD_AT_END) ? word(WORD_AT_START, tail) : '';
    return { from: from - left.length, to: to + right.length, text: left + comes + right };
}

/** What happened to the text last, as the server is told. */
export type After = 'typing' | 'paste' | 'undo' | 'accept';

/** From how many characters on an insertion is no typing. */
const PASTED_CHARS_MIN = 16;

/**
 * How the changes of one event came about, which are neither undone nor of Hone. Undefined if that
 * cannot be told, as where a tool has changed several places.
 */
export function afterOf(changes: readonly Change[]): After | undefined {
    const [change] = changes;
    if (!change || changes.length > 1) return undefined;
    // Enter inserts line breaks and blanks alone, and an entry of the suggestion list has none.
    const text = change.text.trim();
    const isLong = text.length >= PASTED_CHARS_MIN || text.includes('\n');
    if (!isLong || !/\s/.test(text)) return 'typing';
    // What replaces a text may be of a tool that formats.
    return change.rangeLength === 0 ? 'paste' : undefined;
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
 * The new text as one line, because a decoration has only one: its first line, and how many follow.
 * Whole lines that are drawn behind another one begin with the sign of a line break.
 */
export function onOneLine(text: string, isBelow = false): string {
    const lines = text.replace(/\r?\n$/, '').split(/\r?\n/);
    if (isBelow) lines.unshift('');
    const first = Math.max(
        lines.findIndex((line) => line.trim() !== ''),
        0,
    );
    const line = first === 0 ? lines[0]! : ` ⏎ ${lines[first]!.trim()}`;
    const more = lines.length - 1 - first;
    const chars = [...line];
    const cut = chars.length > SHOWN_CHARS_MAX;
    const shown = cut ? `${chars.slice(0, SHOWN_CHARS_MAX).join('')}…` : line;
    return more === 0 ? shown : `${shown} ⏎ +${more} ${more === 1 ? 'line' : 'lines'}`;
}

/** What goes and what comes, as a diff. */
export function diffOf({ old, new: comes }: Pick<NextEdit, 'old' | 'new'>): string {
    const lines = (text: string, sign: string) =>
        text === ''
            ? []
            : text
                  .replace(/\r?\n$/, '')
                  .split(/\r?\n/)
                  .map((line) => `${sign} ${line}`);
    return [...lines(old, '-'), ...lines(comes, '+')].join('\n');
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
