import assert from 'node:assert/strict';
import { test } from 'node:test';
import manifest from '../package.json';
import {
    afterOf,
    diffOf,
    direction,
    elsewhereOf,
    fileName,
    insertsBelow,
    keyOf,
    onOneLine,
    previewOf,
    rebased,
    tabIndents,
    type NextEdit,
} from '../src/core/nextEdit';

const EDIT: NextEdit = {
    id: 'e-1',
    uri: 'file:///a.rs',
    start: 10,
    end: 14,
    old: 'load',
    new: 'fetch',
};

function change(rangeOffset: number, rangeLength: number, text: string) {
    return { rangeOffset, rangeLength, text };
}

test('an edit moves with the changes before it and stays at those behind it', () => {
    const after = rebased(EDIT, [change(20, 1, 'later'), change(0, 2, 'more text')]);
    assert.deepEqual([after?.start, after?.end], [17, 21]);
    assert.deepEqual(rebased(EDIT, [change(14, 0, 'x')]), EDIT);
    assert.deepEqual(rebased(EDIT, []), EDIT);
});

test('a change at the place of an edit that disagrees ends it', () => {
    for (const touching of [
        change(11, 1, ''),
        change(10, 0, 'x'),
        change(8, 3, 'y'),
        change(13, 5, ''),
        change(0, 99, ''),
    ]) {
        assert.equal(rebased(EDIT, [touching]), undefined, JSON.stringify(touching));
    }
    const insertion = { ...EDIT, end: 10, old: '' };
    assert.equal(rebased(insertion, [change(10, 0, 'x')]), undefined);
    assert.equal(rebased(insertion, [change(12, 0, 'x')])?.start, 10);
});

/** What is left of an edit while one key after the other changes the text at its place. */
function typed(edit: NextEdit, ...keys: [at: number, length: number, text: string][]) {
    return keys.reduce<NextEdit | undefined>(
        (left, [at, length, text]) => left && rebased(left, [change(at, length, text)]),
        edit,
    );
}

test('of an edit that is typed by hand, what is left stays', () => {
    const { id, uri, new: comes } = EDIT;
    const left = (old: string, start = 10) => ({
        id,
        uri,
        start,
        end: start + old.length,
        old,
        new: comes,
        isBegun: true,
    });
    // The old text is selected and typed over, letter by letter.
    assert.deepEqual(typed(EDIT, [10, 4, 'f']), left('f'));
    assert.deepEqual(typed(EDIT, [10, 4, 'f'], [11, 0, 'e']), left('fe'));
    assert.equal(typed(EDIT, [10, 4, 'f'], [11, 0, 'x']), undefined);
    assert.equal(typed(EDIT, [12, 2, ''], [12, 0, 'x']), undefined);
    // It is deleted by Backspace, and typed anew.
    assert.deepEqual(typed(EDIT, [13, 1, ''], [12, 1, '']), left('lo'));
    assert.deepEqual(typed(EDIT, [13, 1, ''], [12, 1, ''], [11, 1, ''], [10, 1, '']), left(''));
    // The new text comes in front of it.
    assert.deepEqual(typed(EDIT, [10, 0, 'f'], [0, 0, 'xx']), left('fload', 12));
    // Once it has all been typed, nothing is left.
    assert.equal(typed(EDIT, [10, 4, 'fetc'], [14, 0, 'h']), undefined);
    const insertion = { ...EDIT, end: 10, old: '', new: ', 2' };
    assert.equal(typed(insertion, [10, 0, ','])?.old, ',');
    assert.equal(typed(insertion, [10, 0, ','], [11, 0, ' '])?.old, ', ');
});

test('Enter at the end of the line above begins the lines that an edit inserts', () => {
    for (const lineBreak of ['\n', '\r\n']) {
        const lines = { ...EDIT, end: 10, old: '', new: `    two;${lineBreak}` };
        const at = 10 - lineBreak.length;
        const begun = typed(lines, [at, 0, `${lineBreak}    `]);
        assert.equal(begun?.old, `    ${lineBreak}`);
        assert.equal(begun.start, 10);
        assert.equal(typed(begun, [14, 0, 't'])?.old, `    t${lineBreak}`);
        assert.equal(typed(begun, [14, 0, 'x']), undefined);
        // A line that is indented otherwise is another one, and the edit stays below it.
        const other = typed(lines, [at, 0, `${lineBreak}\t`]);
        assert.deepEqual([other?.start, other?.old], [11 + lineBreak.length, '']);
    }
});

function preview(old: string, comes: string, before = '', behind = '') {
    const { from, to, text } = previewOf({ ...EDIT, old, new: comes }, before, behind);
    const whole = before + old + behind;
    return [whole.slice(before.length + from, before.length + to), text];
}

test('whole words are drawn of an edit, and nothing that stays', () => {
    assert.deepEqual(preview('g', 's', 'x.', 'etUser();'), ['getUser', 'setUser']);
    assert.deepEqual(preview('getUser', 'setUser'), ['getUser', 'setUser']);
    assert.deepEqual(preview('loads', 'load', 'a ', '('), ['loads', 'load']);
    assert.deepEqual(preview('s', '', 'file.load', '('), ['loads', 'load']);
    assert.deepEqual(preview('a.load(1)', 'a.fetch(1)'), ['load', 'fetch']);
    assert.deepEqual(preview('(', '[', 'größe', 'x'), ['(', '[']);
    assert.deepEqual(preview('😀', '😁'), ['😀', '😁']);
    // What is inserted is drawn by itself, as behind a part that was typed.
    assert.deepEqual(preview('fe', 'fetch'), ['', 'tch']);
    assert.deepEqual(preview('', 's', 'load', '('), ['', 's']);
    assert.deepEqual(preview('    tw\n', '    two;\n    three;\n'), ['', 'o;\n    three;']);
    assert.deepEqual(preview('one;\n', ''), ['one;\n', '']);
    assert.deepEqual(preview('a(1);\na(2);\n', 'b(1);\nb(2);\n'), [
        'a(1);\na(2);\n',
        'b(1);\nb(2);\n',
    ]);
});

test('the server is told how the text has changed', () => {
    const after = (text: string, length = 0) => afterOf([change(5, length, text)]);
    assert.equal(after('x'), 'typing');
    assert.equal(after('', 7), 'typing');
    assert.equal(after(`\n${' '.repeat(20)}`), 'typing');
    assert.equal(after('one;\ntwo;'), 'paste');
    assert.equal(after('a line of more than a few'), 'paste');
    assert.equal(after('anEntryOfTheSuggestionList', 2), 'typing');
    assert.equal(after('anEntryOfTheSuggestionList'), 'typing');
    assert.equal(after('a line that a tool has formatted', 30), undefined);
    assert.equal(afterOf([change(5, 0, 'x'), change(9, 0, 'x')]), undefined);
    assert.equal(afterOf([]), undefined);
});

test('the way to an edit is told in lines, or by its file', () => {
    assert.equal(direction(3, 15, undefined), '→ 12 lines below');
    assert.equal(direction(3, 2, undefined), '→ 1 line above');
    assert.equal(direction(3, 3, undefined), '→ this line');
    assert.equal(direction(3, 9, 'b.rs'), '→ b.rs:10');
});

test('of several new lines the first is shown, and long ones are cut', () => {
    assert.equal(onOneLine('one;\r\n    two;\r\n'), 'one; ⏎ +1 line');
    assert.equal(onOneLine('one;\n    two;\n\nthree;'), 'one; ⏎ +3 lines');
    assert.equal(onOneLine('\n    one;\n    two;'), ' ⏎ one; ⏎ +1 line');
    assert.equal(onOneLine('  fetch'), '  fetch');
    assert.equal(onOneLine('\n'), '');
    assert.equal([...onOneLine('😀'.repeat(500))].length, 161);
});

test('the hover shows the whole of an edit', () => {
    assert.equal(diffOf({ old: 'a;\n', new: 'b;\nc;\n' }), '- a;\n+ b;\n+ c;');
    assert.equal(diffOf({ old: '', new: 'x' }), '+ x');
});

test('inserted lines are shown behind the line above them', () => {
    assert.ok(insertsBelow({ old: '', new: '    two;\n' }, 0));
    assert.ok(!insertsBelow({ old: '', new: 'two' }, 0));
    assert.ok(!insertsBelow({ old: 'one;\n', new: 'two;\n' }, 0));
    assert.equal(onOneLine('    one;\n    two;\n', true), ' ⏎ one; ⏎ +1 line');
});

test('Tab keeps its meaning where it indents', () => {
    assert.ok(tabIndents('') && tabIndents('\t  '));
    assert.ok(!tabIndents('  x'));
});

test('an answer may name a place in a file that is not open', () => {
    const note = { reason: 'in_another_file', sentence: 'There.', path: '/p/b.rs', line: 3 };
    assert.deepEqual(elsewhereOf({ edits: [], _hone: note }), { path: '/p/b.rs', line: 2 });
    const others = [null, {}, { _hone: { ...note, reason: 'shown' } }];
    for (const answer of [...others, { _hone: { ...note, line: '3' } }]) {
        assert.equal(elsewhereOf(answer), undefined);
    }
    assert.equal(fileName('/p/b.rs'), 'b.rs');
    assert.equal(fileName('C:\\p\\b.rs'), 'b.rs');
    assert.equal(fileName('b.rs'), 'b.rs');
});

test('the hint names a key that goes to the edit', () => {
    assert.equal(keyOf(true, 'darwin'), 'Tab');
    assert.equal(keyOf(false, 'linux'), 'Alt+N');
    assert.equal(keyOf(false, 'darwin'), '⌃⌥N');
    assert.equal(keyOf(false, undefined), 'Alt+N, on a Mac ⌃⌥N');
    const keys = manifest.contributes.keybindings
        .filter(({ command }) => command === 'hone.nextEdit')
        .map(({ key, mac }) => mac ?? key);
    assert.deepEqual(keys, ['tab', 'ctrl+alt+n']);
});
