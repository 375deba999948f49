// Draws a next edit: the old text struck through, the new one behind it, an arrow in the margin,
// and a hint at the cursor if the place is not on screen.

import * as vscode from 'vscode';
import { join } from 'node:path';
import { diffOf, insertsBelow, onOneLine, previewOf, type NextEdit } from './core/nextEdit';

const ARROW = join(__dirname, '..', 'media', 'next-edit.svg');

/** A decoration would join several blanks. */
const NO_BREAK_SPACE = '\u00a0';

export class EditPainter implements vscode.Disposable {
    private readonly old = vscode.window.createTextEditorDecorationType({
        backgroundColor: new vscode.ThemeColor('diffEditor.removedTextBackground'),
        textDecoration: 'line-through',
        rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
    });
    private readonly new = vscode.window.createTextEditorDecorationType({
        after: { backgroundColor: new vscode.ThemeColor('diffEditor.insertedTextBackground') },
        rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
    });
    private readonly arrow = vscode.window.createTextEditorDecorationType({
        gutterIconPath: ARROW,
        gutterIconSize: 'contain',
        overviewRulerColor: new vscode.ThemeColor('diffEditor.insertedTextBackground'),
    });
    private readonly hint = vscode.window.createTextEditorDecorationType({
        after: {
            color: new vscode.ThemeColor('editorGhostText.foreground'),
            margin: '0 0 0 2em',
        },
    });
    private painted: vscode.TextEditor | undefined;

    /** `place` is undefined if the edit is in another document. */
    draw(
        editor: vscode.TextEditor,
        place: vscode.Range | undefined,
        edit: NextEdit,
        hint: string | undefined,
    ): void {
        if (this.painted !== editor) this.clear();
        this.painted = editor;
        const shown = place && shownOf(editor.document, place, edit);
        editor.setDecorations(this.old, shown?.old ?? []);
        editor.setDecorations(this.new, shown?.new ?? []);
        // An arrow for the first line alone: the range of a deleted line ends in the next one.
        const first = shown?.new[0]?.range ?? (place && new vscode.Range(place.start, place.start));
        editor.setDecorations(this.arrow, first ? [first] : []);
        if (hint === undefined) editor.setDecorations(this.hint, []);
        else this.drawHint(editor, hint);
    }

    /** Draws a hint alone: the edit is in a file that is not open. */
    point(editor: vscode.TextEditor, hint: string): void {
        this.clear();
        this.painted = editor;
        this.drawHint(editor, hint);
    }

    private drawHint(editor: vscode.TextEditor, hint: string): void {
        const line = editor.selection.active.line;
        const end = editor.document.lineAt(line).range.end;
        const renderOptions = { after: { contentText: hint } };
        editor.setDecorations(this.hint, [{ range: new vscode.Range(end, end), renderOptions }]);
    }

    clear(): void {
        for (const type of [this.old, this.new, this.arrow, this.hint]) {
            this.painted?.setDecorations(type, []);
        }
        this.painted = undefined;
    }

    dispose(): void {
        for (const type of [this.old, this.new, this.arrow, this.hint]) type.dispose();
    }
}

interface Shown {
    old: vscode.DecorationOptions[];
    new: vscode.DecorationOptions[];
}

/** Where the old text is struck through and the new one is drawn. Both show the whole of it. */
function shownOf(document: vscode.TextDocument, place: vscode.Range, edit: NextEdit): Shown {
    const { start, end } = place;
    const before = document.lineAt(start.line).text.slice(0, start.character);
    const behind = document.lineAt(end.line).text.slice(end.character);
    const { from, to, text } = previewOf(edit, before, behind);
    const [first, last] = [edit.start + from, edit.start + to];
    const goes = new vscode.Range(document.positionAt(first), document.positionAt(last));
    const hoverMessage = new vscode.MarkdownString().appendCodeblock(diffOf(edit), 'diff');
    const old = goes.isEmpty ? [] : [{ range: goes, hoverMessage }];
    if (text === '') return { old, new: [] };
    const { line, character } = goes.start;
    const drawn = { old: document.getText(goes), new: text };
    const isBelow = line > 0 && insertsBelow(drawn, character);
    const at = isBelow ? document.lineAt(line - 1).range.end : goes.end;
    const contentText = onOneLine(text, isBelow).replaceAll(' ', NO_BREAK_SPACE);
    const range = new vscode.Range(at, at);
    return { old, new: [{ range, renderOptions: { after: { contentText } }, hoverMessage }] };
}
