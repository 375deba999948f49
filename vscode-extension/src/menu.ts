// The menu that the item in the status bar opens.

import * as vscode from 'vscode';
import { MORE, OUTPUT, mainMenu, moreMenu, type Menu, type MenuInputs } from './core/menu';
import type { Server } from './server';
import { eagerness, isEnabled, isLanguageOn } from './settings';

export async function openMenu(
    server: Server,
    output: vscode.OutputChannel,
    isRecording: boolean,
): Promise<void> {
    const inputs = { ...inputsOf(server), isRecording };
    let does = await pickFrom(mainMenu(inputs));
    if (does === MORE) does = await pickFrom(moreMenu(inputs));
    // A click has put the focus onto the status bar, where a blank would open the menu again.
    await vscode.commands.executeCommand('workbench.action.focusActiveEditorGroup');
    if (does === OUTPUT) output.show();
    else if (does !== undefined) await vscode.commands.executeCommand(`hone.${does}`);
}

function inputsOf(server: Server): Omit<MenuInputs, 'isRecording'> {
    const language = vscode.window.activeTextEditor?.document.languageId;
    const { isTrusted, workspaceFolders } = vscode.workspace;
    return {
        server: server.state,
        enabled: isEnabled(),
        eagerness: eagerness(),
        language,
        languageOn: language !== undefined && isLanguageOn(language),
        hasFolder: isTrusted && workspaceFolders !== undefined,
    };
}

async function pickFrom({ title, groups }: Menu): Promise<string | undefined> {
    const separator = { label: '', kind: vscode.QuickPickItemKind.Separator, does: undefined };
    const entries = groups.flatMap((group) => [separator, ...group]).slice(1);
    return (await vscode.window.showQuickPick(entries, { title }))?.does;
}
