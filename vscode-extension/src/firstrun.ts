// The first minute: what is needed is asked for, and a scratch file opens in which the first Tab is
// pressed.

import * as vscode from 'vscode';
import { cursor, scratchesFor, type Scratch } from './core/scratch';
import { NEED_TEXT, type Need } from './core/need';
import { size } from './core/models';
import { downloadNeeded, neededModel } from './modelpicker';
import { say } from './say';
import type { Server } from './server';

/** Asks for what is not there yet. Returns false if it cannot tell what that is. */
export async function askFor(need: Need, server: Server): Promise<boolean> {
    if (need === 'program') {
        const install = 'How to Install';
        const picked = await say('information', `Hone: ${NEED_TEXT.program}.`, install);
        if (picked) await vscode.commands.executeCommand('hone.install');
        return true;
    }
    const model = await neededModel(server);
    if (!model) return false;
    const [download, other] = ['Download', 'Choose Another'];
    const text = `Hone needs a model: ${model.name}, ${size(model)}.`;
    const picked = await say('information', text, download, other);
    if (picked === other) await vscode.commands.executeCommand('hone.model');
    if (picked !== download) return true;
    try {
        await downloadNeeded(server, model);
    } catch (error) {
        void say('error', `Hone: ${(error as Error).message}`);
    }
    return true;
}

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
    // A request that comes before the model may end before it.
    await server.loaded();
    await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
}

async function pickLanguage(): Promise<Scratch | undefined> {
    const active = vscode.window.activeTextEditor?.document.languageId;
    const entries = scratchesFor(active).map((scratch) => ({ label: scratch.name, scratch }));
    const options = { title: 'Hone: a file to try it in' };
    return (await vscode.window.showQuickPick(entries, options))?.scratch;
}
