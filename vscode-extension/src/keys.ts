// The keys that reject an offer, accept a part of it or show another. Each does what the editor's
// own key does and reports it to the server.

import * as vscode from 'vscode';
import { partAccepted } from './core/offers';
import { viewOf, type Provider } from './provider';

export function registerKeys(provider: Provider): vscode.Disposable[] {
    return [
        vscode.commands.registerCommand('hone.dismiss', () => dismiss(provider)),
        vscode.commands.registerCommand('hone.acceptWord', () =>
            acceptPart(provider, 'editor.action.inlineSuggest.acceptNextWord'),
        ),
        vscode.commands.registerCommand('hone.acceptLine', () =>
            acceptPart(provider, 'editor.action.inlineSuggest.acceptNextLine'),
        ),
        vscode.commands.registerCommand('hone.next', () =>
            step(provider, 'editor.action.inlineSuggest.showNext', 1),
        ),
        vscode.commands.registerCommand('hone.previous', () =>
            step(provider, 'editor.action.inlineSuggest.showPrevious', -1),
        ),
    ];
}

/**
 * Hone's offer at the cursor, if there is one. Another extension's text may be on screen instead.
 */
function live(provider: Provider, editor: vscode.TextEditor | undefined) {
    if (!editor) return undefined;
    const { document, selection } = editor;
    return provider.offers.at(viewOf(document), document.offsetAt(selection.active));
}

async function dismiss(provider: Provider): Promise<void> {
    const here = live(provider, vscode.window.activeTextEditor);
    await vscode.commands.executeCommand('editor.action.inlineSuggest.hide');
    provider.reportRejected(here?.offer.id);
    provider.offers.clear();
}

/** Shows another offer. The first time, the editor asks the server for more offers. */
async function step(provider: Provider, command: string, by: 1 | -1): Promise<void> {
    await vscode.commands.executeCommand(command);
    if (!provider.proposedApi) provider.reportShown(provider.offers.step(by));
}

async function acceptPart(provider: Provider, command: string): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const here = live(provider, editor);
    await vscode.commands.executeCommand(command);
    if (!editor || !here || provider.proposedApi) return;
    const { document, selection } = editor;
    // If the whole offer was accepted, the item's command reports it.
    const length = partAccepted(here.offer, viewOf(document), document.offsetAt(selection.active));
    if (length !== undefined) provider.reportPart(here.offer.id, length);
}
