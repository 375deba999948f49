// Draws a next edit: the old text struck through, the new one behind it, an arrow in the margin,
// and a hint at the cursor if the place is not on screen.

import * as vscode from 'vscode';
import { join } from 'node:path';
import { insertsBelow, onOneLine, type NextEdit } from './core/nextEdit';

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
        const at = (where: vscode.Range | undefined) => (where ? [where] : []);
        editor.setDecorations(this.old, at(place && !place.isEmpty ? place : undefined));
        const drawn = place && edit.new !== '' ? newText(editor.document, place, edit) : undefined;
        // An arrow for the first line alone: the range of a deleted line ends in the next one.
        const first = place && new vscode.Range(place.start, place.start);
        editor.setDecorations(this.arrow, at(drawn?.range ?? first));
        editor.setDecorations(this.new, drawn ? [drawn] : []);
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

function newText(
    document: vscode.TextDocument,
    place: vscode.Range,
    edit: NextEdit,
): vscode.DecorationOptions {
    const { line, character } = place.start;
    const isBelow = line > 0 && insertsBelow(edit, character);
    const end = isBelow ? document.lineAt(line - 1).range.end : place.end;
    const contentText = onOneLine(edit.new, isBelow).replaceAll(' ', NO_BREAK_SPACE);
    return {
        range: new vscode.Range(end, end),
        renderOptions: { after: { contentText } },
        hoverMessage: new vscode.MarkdownString().appendCodeblock(edit.new),
    };
}
