// The next edit: what the user changed twice is offered where it comes next. Tab goes there, and
// Tab again makes the edit. The stable API has no such offers, so this draws decorations.

import * as vscode from 'vscode';
import { DOCUMENTS } from './client';
import {
    afterOf,
    direction,
    elsewhereOf,
    fileName,
    keyOf,
    rebased,
    tabIndents,
    type After,
    type Elsewhere,
    type NextEdit,
} from './core/nextEdit';
import {
    ACCEPT_COMMAND,
    didReject,
    didShowEdit,
    inlineEdit,
    itemReference,
    type InlineEdit,
} from './core/protocol';
import { reasonOf } from './core/reason';
import { EditPainter } from './editPainter';
import type { Server } from './server';
import { isEnabled, isLanguageOn, vimHasKeys } from './settings';

/** A pause after the last change. A completion of the line comes first. */
const RESTS_MS = 250;

/** LSP's `InlineCompletionTriggerKind`. */
const INVOKED = 1;
const AUTOMATIC = 2;

/** What is said if the server gives no reason, and for how long. */
const NO_EDIT = 'There is no next edit.';
const SAID_MS = 5_000;

/** Tab and Escape belong to the edit while this is true. */
const HAS_KEYS = 'hone.nextEdit';

/** There is an edit, and it can be rejected. */
const IS_SHOWN = 'hone.nextEditShown';

/** A document and where the cursor is in it. */
interface Moment {
    editor: vscode.TextEditor;
    version: number;
    selection: vscode.Selection;
}

/** What a request brought: an edit or a place, or none. What comes too late is not looked at. */
type Found = 'something' | 'nothing' | 'late';

export class NextEdits implements vscode.Disposable {
    private readonly subscriptions: vscode.Disposable[];
    private readonly painter = new EditPainter();
    private live: NextEdit | undefined;
    /** Without a live edit: where the next one is, in a file that is not open. */
    private elsewhere: Elsewhere | undefined;
    /** How the live edit was asked for. After it, the next one is asked for in the same way. */
    private kind = AUTOMATIC;
    /**
     * Where the cursor was brought, or where the key was pressed. While it rests there, Tab
     * continues and does not indent.
     */
    private brought: { uri: string; position: vscode.Position } | undefined;
    /** The document that an edit was made in last, and its version after it. */
    private made: { document: vscode.TextDocument; version: number } | undefined;
    /** What happened to the text of this window last. */
    private after: After | undefined;
    /** Requests so far. Only the newest one is shown. */
    private asked = 0;
    /** Why the last request brought nothing. */
    private otherwise = NO_EDIT;
    /** Where it is said. The next step takes it back. */
    private said: vscode.Disposable | undefined;
    private timer: NodeJS.Timeout | undefined;
    /** Whether a step of the walk is being made. Keys are dropped meanwhile. */
    private isStepping = false;
    /** Where a key has asked for an edit, as long as there is no answer. */
    private awaited: Moment | undefined;

    constructor(private readonly server: Server) {
        this.subscriptions = [
            vscode.workspace.onDidChangeTextDocument((event) => this.changed(event)),
            vscode.window.onDidChangeTextEditorSelection(() => this.draw()),
            vscode.window.onDidChangeActiveTextEditor(() => this.draw()),
            vscode.window.onDidChangeTextEditorVisibleRanges(() => this.draw()),
            vscode.workspace.onDidCloseTextDocument((document) => {
                if (document.uri.toString() === this.live?.uri) this.drop();
            }),
            vscode.commands.registerCommand('hone.nextEdit', () => this.next()),
            vscode.commands.registerCommand('hone.dismissEdit', () => this.dismiss()),
            this.painter,
        ];
    }

    /**
     * A step ends before the wait for the next edit, which a model may write for seconds. The keys
     * are the user's meanwhile.
     */
    private async next(): Promise<void> {
        if (this.isStepping) return;
        this.isStepping = true;
        try {
            await this.step();
        } finally {
            this.isStepping = false;
        }
    }

    /** Goes to the edit, which it asks for if there is none, or makes it if the cursor is there. */
    private async step(): Promise<void> {
        this.said?.dispose();
        const edit = this.live;
        if (!edit) {
            if (this.elsewhere) await this.open(this.elsewhere);
            void this.find();
            return;
        }
        const editor = vscode.window.activeTextEditor;
        const place = editor && this.placeAtCursor(editor);
        if (place) await this.make(editor, edit, place);
        else await this.go(edit);
    }

    /** Asks for an edit, and goes there if the user still waits for it. */
    private async find(): Promise<void> {
        const editor = vscode.window.activeTextEditor;
        // Who presses the key once more would only have the model begin anew.
        if (!editor || (this.awaited && isStill(this.awaited))) return;
        const moment = momentOf(editor);
        this.awaited = moment;
        const asking = this.ask(INVOKED);
        vscode.window.setStatusBarMessage('Hone: computing a next edit…', asking);
        const found = await asking;
        if (this.awaited === moment) this.awaited = undefined;
        if (found === 'late' || !isStill(moment)) return;
        if (found === 'nothing') {
            const text = `Hone: ${this.otherwise}`;
            this.said = vscode.window.setStatusBarMessage(text, SAID_MS);
        }
        if (this.live && !this.placeAtCursor(editor)) await this.go(this.live);
    }

    private async go(edit: NextEdit): Promise<void> {
        const uri = vscode.Uri.parse(edit.uri);
        const active = vscode.window.activeTextEditor;
        const editor =
            active?.document.uri.toString() === edit.uri
                ? active
                : await vscode.window.showTextDocument(uri);
        const place = this.placeIn(editor);
        if (!place) return this.drop();
        this.bring(editor, place.start);
        editor.revealRange(place, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
        this.draw();
    }

    /** Opens the file in which the next edit is, and goes there. */
    private async open({ path, line }: Elsewhere): Promise<void> {
        this.drop();
        let editor: vscode.TextEditor;
        try {
            editor = await vscode.window.showTextDocument(vscode.Uri.file(path));
        } catch {
            // The file has gone since. What there is instead is asked for next.
            return;
        }
        const place = editor.document.validatePosition(new vscode.Position(line, 0));
        this.bring(editor, place);
        const range = new vscode.Range(place, place);
        editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    }

    private bring(editor: vscode.TextEditor, position: vscode.Position): void {
        editor.selection = new vscode.Selection(position, position);
        this.rest(editor);
    }

    private rest({ document, selection }: vscode.TextEditor): void {
        this.brought = { uri: document.uri.toString(), position: selection.active };
    }

    /** Is called when an offer was accepted. The server decides how long the text must rest. */
    accepted(): void {
        const document = vscode.window.activeTextEditor?.document;
        if (!document || this.isLastChangeOf(document)) return;
        this.after = 'accept';
        this.askAfter(0);
    }

    /** Is called when a part of an offer was accepted. The rest of it is still on screen. */
    acceptedPart(): void {
        this.after = 'accept';
    }

    /** Whether the last change of a document is an edit of this class, and not typed. */
    isLastChangeOf(document: vscode.TextDocument): boolean {
        return this.made?.document === document && this.made.version === document.version;
    }

    /** Makes the edit in one step of undo, and tells the server. */
    private async make(
        editor: vscode.TextEditor,
        edit: NextEdit,
        place: vscode.Range,
    ): Promise<void> {
        const { kind } = this;
        const { document } = editor;
        this.drop();
        this.made = { document, version: document.version + 1 };
        // The editor makes no edit in a document that cannot be changed, or that has changed.
        const isMade = await editor.edit((builder) => builder.replace(place, edit.new));
        if (!isMade) return;
        const behind = edit.start + edit.new.replace(/\r?\n$/, '').length;
        this.bring(editor, document.positionAt(behind));
        await vscode.commands.executeCommand(ACCEPT_COMMAND, edit.id);
        if (this.isLastChangeOf(document)) void this.ask(kind);
    }

    private dismiss(): void {
        const id = this.live?.id;
        this.drop();
        if (id === undefined) return;
        void this.server.connected?.sendNotification(didReject, { id, reason: 'esc' });
    }

    private changed(event: vscode.TextDocumentChangeEvent): void {
        const { document, contentChanges } = event;
        if (contentChanges.length === 0) return;
        let isAgreed = false;
        if (document.uri.toString() === this.live?.uri) {
            const before = this.live;
            this.live = rebased(before, contentChanges);
            isAgreed = this.live !== undefined && this.live.old !== before.old;
            if (!this.live) this.drop();
        }
        if (document !== vscode.window.activeTextEditor?.document) return;
        this.after = this.howItCame(event);
        this.elsewhere = undefined;
        this.draw();
        clearTimeout(this.timer);
        // What is left of the edit on screen is known, and an older answer says nothing of it.
        if (isAgreed) this.asked++;
        else this.askAfter(RESTS_MS);
    }

    private howItCame({ document, contentChanges, reason }: vscode.TextDocumentChangeEvent) {
        if (reason !== undefined) return 'undo';
        return this.isLastChangeOf(document) ? 'accept' : afterOf(contentChanges);
    }

    private askAfter(ms: number): void {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => void this.ask(AUTOMATIC), ms);
    }

    /** Asks the server, and shows what it answers. */
    private async ask(kind: number): Promise<Found> {
        clearTimeout(this.timer);
        const [client, editor] = [this.server.connected, vscode.window.activeTextEditor];
        if (!client || !editor || !isWanted(editor, kind)) return 'nothing';
        const { document, selection } = editor;
        const moment = momentOf(editor);
        const number = ++this.asked;
        const textDocument = {
            ...client.code2ProtocolConverter.asTextDocumentIdentifier(document),
            version: document.version,
        };
        const position = client.code2ProtocolConverter.asPosition(selection.active);
        try {
            const context = { triggerKind: kind, ...(this.after && { after: this.after }) };
            const answer = await client.sendRequest(inlineEdit, {
                textDocument,
                position,
                context,
            });
            if (number !== this.asked || document.version !== moment.version) return 'late';
            const [found] = answer.edits;
            this.otherwise = reasonOf(answer)?.sentence ?? NO_EDIT;
            // What came with a key stays as long as it fits.
            if (!found && kind === AUTOMATIC && this.kind === INVOKED)
                return this.live ? 'something' : 'nothing';
            const before = this.live?.id;
            this.live = found && editOf(found);
            this.elsewhere = this.live ? undefined : elsewhereOf(answer);
            this.kind = kind;
            if (kind === INVOKED && isStill(moment)) this.rest(editor);
            this.draw();
            if (!this.live) return this.elsewhere ? 'something' : 'nothing';
            if (this.live.id !== before) {
                void client.sendNotification(didShowEdit, itemReference(this.live.id));
            }
            return 'something';
        } catch {
            // The server has ended, which the status bar shows.
            return 'nothing';
        }
    }

    /** Where the edit is in this editor, if what it replaces stands there. */
    private placeIn(editor: vscode.TextEditor): vscode.Range | undefined {
        const edit = this.live;
        if (edit?.uri !== editor.document.uri.toString()) return undefined;
        return rangeOf(editor.document, edit);
    }

    /** The same, if the cursor is on its lines. */
    private placeAtCursor(editor: vscode.TextEditor): vscode.Range | undefined {
        const place = this.placeIn(editor);
        const { line } = editor.selection.active;
        return place && place.start.line <= line && line <= place.end.line ? place : undefined;
    }

    private draw(): void {
        const [editor, edit] = [vscode.window.activeTextEditor, this.live];
        if (!edit && editor && this.elsewhere) return this.point(editor, this.elsewhere);
        if (!edit || !editor) return this.hide();
        const document = documentOf(edit.uri);
        const place = document && rangeOf(document, edit);
        if (!place) return this.drop();
        const isHere = document === editor.document;
        const cursor = editor.selection.active;
        const file = isHere ? undefined : fileName(edit.uri);
        const isVisible = isHere && editor.visibleRanges.some((range) => range.intersection(place));
        const way = direction(cursor.line, place.start.line, file);
        const hint = isVisible ? undefined : this.hint(editor, way);
        this.painter.draw(editor, isHere ? place : undefined, edit, hint);
        this.takeKeys(editor);
    }

    /** Shows where the next edit is, in a file that is not open. */
    private point(editor: vscode.TextEditor, { path, line }: Elsewhere): void {
        const way = direction(editor.selection.active.line, line, fileName(path));
        this.painter.point(editor, this.hint(editor, way));
        this.takeKeys(editor);
    }

    /** The way to the edit, and the key that goes there. */
    private hint(editor: vscode.TextEditor, way: string): string {
        // Tab indents what is selected, and belongs to Vim where that is.
        const tabGoes = isCaret(editor) && this.isTabFree(editor) && !vimHasKeys();
        return `${way} (${keyOf(tabGoes, windowPlatform())})`;
    }

    /** Tab and Escape belong to the edit, unless Tab indents where the cursor is. */
    private takeKeys(editor: vscode.TextEditor): void {
        setContext(HAS_KEYS, this.isTabFree(editor));
        setContext(IS_SHOWN, true);
    }

    private isTabFree(editor: vscode.TextEditor): boolean {
        const cursor = editor.selection.active;
        const before = editor.document.lineAt(cursor.line).text.slice(0, cursor.character);
        return this.isBrought(editor) || !tabIndents(before);
    }

    private isBrought({ document, selection }: vscode.TextEditor): boolean {
        const isHere = this.brought?.uri === document.uri.toString();
        return isHere && selection.isEmpty && selection.active.isEqual(this.brought!.position);
    }

    private hide(): void {
        this.painter.clear();
        setContext(HAS_KEYS, false);
        setContext(IS_SHOWN, false);
    }

    private drop(): void {
        this.live = undefined;
        this.elsewhere = undefined;
        this.asked++;
        this.hide();
    }

    dispose(): void {
        clearTimeout(this.timer);
        this.drop();
        for (const subscription of this.subscriptions) subscription.dispose();
    }
}

const contexts = new Map<string, boolean>();

function setContext(name: string, on: boolean): void {
    if (on === (contexts.get(name) ?? false)) return;
    contexts.set(name, on);
    void vscode.commands.executeCommand('setContext', name, on);
}

/** The platform of the user's window, which decides its keys, if it is on this machine. */
function windowPlatform(): string | undefined {
    const { remoteName, uiKind } = vscode.env;
    const isHere = remoteName === undefined && uiKind === vscode.UIKind.Desktop;
    return isHere ? process.platform : undefined;
}

/**
 * Who has selected something, as in a placeholder of a snippet, or writes at several places, is in
 * the middle of something else. The key is answered all the same.
 */
function isWanted(editor: vscode.TextEditor, kind: number): boolean {
    const { document } = editor;
    if (vscode.languages.match(DOCUMENTS, document) === 0) return false;
    if (kind === INVOKED) return true;
    return isEnabled() && isLanguageOn(document.languageId) && isCaret(editor);
}

function isCaret({ selections, selection }: vscode.TextEditor): boolean {
    return selections.length === 1 && selection.isEmpty;
}

function momentOf(editor: vscode.TextEditor): Moment {
    return { editor, version: editor.document.version, selection: editor.selection };
}

/** Whether neither the text nor the cursor has changed since. */
function isStill({ editor, version, selection }: Moment): boolean {
    const isThere = editor === vscode.window.activeTextEditor;
    return isThere && editor.document.version === version && editor.selection.isEqual(selection);
}

function documentOf(uri: string): vscode.TextDocument | undefined {
    return vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri);
}

function rangeOf(document: vscode.TextDocument, edit: NextEdit): vscode.Range | undefined {
    const range = new vscode.Range(document.positionAt(edit.start), document.positionAt(edit.end));
    return document.getText(range) === edit.old ? range : undefined;
}

/** The edit, if it is meant for a document as it is now. */
function editOf(found: InlineEdit): NextEdit | undefined {
    const { uri, version } = found.textDocument;
    const document = documentOf(vscode.Uri.parse(uri).toString());
    const id = found.command.arguments?.[0];
    if (!document || document.version !== version || typeof id !== 'string') return undefined;
    const { start, end } = found.range;
    const offset = (at: { line: number; character: number }) =>
        document.offsetAt(new vscode.Position(at.line, at.character));
    const edit: NextEdit = {
        id,
        uri: document.uri.toString(),
        start: offset(start),
        end: offset(end),
        old: found._hone.old,
        new: found.text,
    };
    return rangeOf(document, edit) && edit;
}
