// The last step of the walkthrough: a scratch file in which the first Tab is pressed.

import * as vscode from 'vscode';
import { cursor, scratchesFor, type Scratch } from './core/scratch';
import type { Server } from './server';

export async function tryIt(server: Server): Promise<void> {
    // If the server does not run, this says what to do about it.
    server.client();
    const picked = await pickLanguage();
    if (!picked) return;
    const document = await vscode.workspace.openTextDocument({
        language: picked.languageId,
        content: picked.before + picked.after,
    });
    const editor = await vscode.window.showTextDocument(document);
    const { line, character } = cursor(picked);
    const at = new vscode.Position(line, character);
    editor.selection = new vscode.Selection(at, at);
    await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
}

async function pickLanguage(): Promise<Scratch | undefined> {
    const active = vscode.window.activeTextEditor?.document.languageId;
    const entries = scratchesFor(active).map((scratch) => ({ label: scratch.name, scratch }));
    const options = { title: 'Hone: a file to try it in' };
    return (await vscode.window.showQuickPick(entries, options))?.scratch;
}
