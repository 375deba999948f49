// Records what happens in this window while the user wants it: Hone: Record This Session. It is off
// in every new window. The entries go to `hone record`, which keeps them in memory until the end.

import * as vscode from 'vscode';
import { DOCUMENTS } from './client';
import { feed, type Fed } from './core/program';
import { Recording, recordedLine, type RecordedDocument, type Recorded } from './core/recording';
import type { Provider } from './provider';
import { confirm, say } from './say';
import type { Server } from './server';

/** What the context key is called by which the palette names the command. */
const IS_RECORDING = 'hone.recording';

interface Running {
    program: Fed;
    listeners: vscode.Disposable[];
}

export class Recorder implements vscode.Disposable {
    private running: Running | undefined;
    private readonly item: vscode.StatusBarItem;

    constructor(
        private readonly server: Server,
        private readonly provider: Provider,
    ) {
        this.item = vscode.window.createStatusBarItem('hone.recording', 1, 0);
        this.item.name = 'Hone: recording';
        this.item.text = '$(record) Hone records';
        this.item.tooltip = 'This session is recorded on this machine. Click to end it.';
        this.item.command = 'hone.stopRecording';
    }

    get isOn(): boolean {
        return this.running !== undefined;
    }

    async start(): Promise<void> {
        if (this.running) throw new Error('the session is recorded already');
        const program = this.server.program();
        const record = 'Record';
        const detail =
            'Every key, every change and the text of the files that are open go into a file in ' +
            'the folder of Hone, on this machine only. Ignored files and files with secrets are ' +
            'left out. It ends with Hone: Stop Recording, or with the window.';
        const title = 'Record what happens in this window from now on?';
        if ((await confirm('information', title, detail, record)) !== record) return;
        const running: Running = { program: feed(program, ['record']), listeners: [] };
        // A program that ends by itself is told at the end of the recording.
        running.program.printed.catch(() => undefined);
        const recording = new Recording((entry) => running.program.write(JSON.stringify(entry)));
        for (const document of vscode.workspace.textDocuments.filter(isRecorded)) {
            recording.opened(recorded(document));
        }
        const active = vscode.window.activeTextEditor;
        if (active) noteCarets(recording, active);
        running.listeners.push(...this.listen(recording));
        this.running = running;
        this.show(true);
    }

    async stop(): Promise<void> {
        const { running } = this;
        if (!running) throw new Error('nothing is recorded now');
        this.ended(running);
        running.program.end();
        const result = JSON.parse(await running.program.printed) as Recorded;
        const open = 'Open';
        const picked = await say('information', `Hone: ${recordedLine(result)}`, open);
        if (picked === open) await vscode.window.showTextDocument(vscode.Uri.file(result.path));
    }

    private listen(recording: Recording): vscode.Disposable[] {
        return [
            vscode.workspace.onDidOpenTextDocument((document) => {
                if (isRecorded(document)) recording.opened(recorded(document));
            }),
            vscode.workspace.onDidCloseTextDocument(({ uri }) => recording.closed(uri.toString())),
            vscode.workspace.onDidChangeTextDocument(({ document, contentChanges, reason }) =>
                recording.changed(
                    document.uri.toString(),
                    document.version,
                    contentChanges,
                    reasonName(reason),
                ),
            ),
            vscode.window.onDidChangeTextEditorSelection(({ textEditor }) =>
                noteCarets(recording, textEditor),
            ),
            vscode.window.onDidChangeActiveTextEditor((editor) => {
                if (editor) recording.focused(editor.document.uri.toString());
            }),
            this.server.onAccepted(() => recording.accepted()),
            this.provider.onAsk((document) => recording.asked(document.uri.toString())),
        ];
    }

    private ended(running: Running): void {
        for (const listener of running.listeners.splice(0)) listener.dispose();
        if (this.running !== running) return;
        this.running = undefined;
        this.show(false);
    }

    private show(on: boolean): void {
        void vscode.commands.executeCommand('setContext', IS_RECORDING, on);
        if (on) this.item.show();
        else this.item.hide();
    }

    dispose(): void {
        // The program writes the file by itself.
        this.running?.program.end();
        if (this.running) this.ended(this.running);
        this.item.dispose();
    }
}

function isRecorded(document: vscode.TextDocument): boolean {
    return vscode.languages.match(DOCUMENTS, document) > 0;
}

function recorded(document: vscode.TextDocument): RecordedDocument {
    return {
        uri: document.uri.toString(),
        path: vscode.workspace.asRelativePath(document.uri),
        languageId: document.languageId,
        version: document.version,
        text: document.getText(),
    };
}

function noteCarets(recording: Recording, { document, selections }: vscode.TextEditor): void {
    const offset = (position: vscode.Position): number => document.offsetAt(position);
    recording.selected(
        document.uri.toString(),
        selections.map(({ start, end }) => [offset(start), offset(end)] as const),
    );
}

function reasonName(reason: vscode.TextDocumentChangeReason | undefined): string | undefined {
    if (reason === vscode.TextDocumentChangeReason.Undo) return 'undo';
    return reason === vscode.TextDocumentChangeReason.Redo ? 'redo' : undefined;
}
