// The folder that a command reads the git history of.

import * as vscode from 'vscode';

/** The folder that the user picks, or `undefined` if there is none or the user picked none. */
export async function pickTrustedFolder(): Promise<vscode.WorkspaceFolder | undefined> {
    // The palette hides these commands in a workspace that is not trusted. A link does not.
    if (!vscode.workspace.isTrusted) {
        throw new Error('git reads the settings of this workspace, which needs your trust');
    }
    const folders = vscode.workspace.workspaceFolders ?? [];
    return folders.length > 1 ? vscode.window.showWorkspaceFolderPick() : folders[0];
}
