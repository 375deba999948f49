// "Learn from This Workspace's History": Hone rehearses on the commits of a folder while the user
// works, and adopts what it learned if that would have done better than the model alone.

import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import * as vscode from 'vscode';
import { ask, run } from './core/program';
import { Rehearsal, rehearsal } from './core/warmStart';
import type { Server } from './server';

const MINE = 'Learn from My Commits';
const ALL = 'Learn from All Commits';

export class WarmStart implements vscode.Disposable {
    private running: AbortController | undefined;

    /** `storage` is a folder of this extension's own, where an interrupted rehearsal is kept. */
    constructor(
        private readonly server: Server,
        private readonly storage: vscode.Uri,
    ) {}

    async learn(): Promise<void> {
        if (this.running) throw new Error('it is learning from the history already');
        const folders = vscode.workspace.workspaceFolders ?? [];
        const folder =
            folders.length > 1 ? await vscode.window.showWorkspaceFolderPick() : folders[0];
        if (!folder) return;
        const me = await mailOf(folder.uri.fsPath);
        const detail =
            'Hone types the last commits into a copy of itself, and keeps what it learns only if ' +
            'that would have done better than the model alone. On two cores this takes some ' +
            'hours, at low priority. You can stop it, and it goes on from there when you start ' +
            'it again. “Hone: Roll Back the Adapter” takes back what it learned.';
        const picked = await vscode.window.showInformationMessage(
            `Learn from the history of ${folder.name}?`,
            { modal: true, detail },
            ...(me === undefined ? [ALL] : [MINE, ALL]),
        );
        if (!picked) return;
        const author = picked === MINE ? me : undefined;
        const said = await this.rehearse(folder.uri.fsPath, author);
        if (said !== undefined) void vscode.window.showInformationMessage(`Hone: ${said}`);
    }

    /** What `hone` says at the end; `undefined` if the user stopped it. */
    private async rehearse(
        folder: string,
        author: string | undefined,
    ): Promise<string | undefined> {
        const program = this.server.program();
        const name = createHash('sha256').update(folder).digest('hex').slice(0, 16);
        const work = vscode.Uri.joinPath(this.storage, 'rehearsals', name).fsPath;
        const abort = new AbortController();
        this.running = abort;
        const options = {
            location: vscode.ProgressLocation.Notification,
            title: `Hone: learning from the history of ${basename(folder)}`,
            cancellable: true,
        };
        try {
            return await vscode.window.withProgress(options, async (progress, token) => {
                token.onCancellationRequested(() => abort.abort());
                const seen = new Rehearsal();
                const take = (line: string): void => {
                    const step = seen.take(line);
                    if (step) progress.report(step);
                };
                await run(program, rehearsal(folder, author, work), take, {
                    signal: abort.signal,
                    isBackground: true,
                });
                return seen.adopted;
            });
        } catch (error) {
            if (abort.signal.aborted) return undefined;
            throw error;
        } finally {
            this.running = undefined;
        }
    }

    /** What is done by then is kept for the next time. */
    dispose(): void {
        this.running?.abort();
    }
}

/** The mail address that git writes into the user's commits here, if there is one. */
async function mailOf(folder: string): Promise<string | undefined> {
    try {
        const mail = await ask('git', ['-C', folder, 'config', 'user.email']);
        return mail.trim() || undefined;
    } catch {
        return undefined;
    }
}
