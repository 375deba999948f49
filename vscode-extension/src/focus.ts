// Tells the server where the cursor came to rest. The model can then read the surrounding code
// before the first request comes.

import * as vscode from 'vscode';
import { DOCUMENTS } from './client';
import { didFocus } from './core/protocol';
import type { Server } from './server';
import { isEnabled, isLanguageOn } from './settings';

/** A cursor that only passes through a line does not rest there. */
const RESTS_MS = 250;

export class Focus implements vscode.Disposable {
    private readonly subscriptions: vscode.Disposable[];
    private timer: NodeJS.Timeout | undefined;

    constructor(private readonly server: Server) {
        this.subscriptions = [
            vscode.window.onDidChangeTextEditorSelection(() => this.moved()),
            vscode.window.onDidChangeActiveTextEditor(() => this.moved()),
            server.onState((state) => {
                if (state.kind === 'running') this.moved();
            }),
        ];
    }

    private moved(): void {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.tell(), RESTS_MS);
    }

    private tell(): void {
        const [client, editor] = [this.server.connected, vscode.window.activeTextEditor];
        if (!client || !editor || !isEnabled()) return;
        const { document } = editor;
        const isCompleted = vscode.languages.match(DOCUMENTS, document) > 0;
        if (!isCompleted || !isLanguageOn(document.languageId)) return;
        const { textDocument, position } =
            client.code2ProtocolConverter.asTextDocumentPositionParams(
                document,
                editor.selection.active,
            );
        void client.sendNotification(didFocus, { textDocument, position });
    }

    dispose(): void {
        clearTimeout(this.timer);
        for (const subscription of this.subscriptions) subscription.dispose();
    }
}
