// "Learn from This Workspace's History": Hone learns from the commits of a folder while the user
// works, and adopts what it learned if that completes more of the newest of them.

import { basename } from 'node:path';
import * as vscode from 'vscode';
import { ask, run } from './core/program';
import { onPath, thisMachine } from './core/search';
import { HistoryLearning, learnHistory } from './core/warmStart';
import { pickTrustedFolder } from './folder';
import { confirm, say } from './say';
import type { Server } from './server';

const ALL = 'Learn from All Commits';
const MINE = 'Only from Mine';

export class WarmStart implements vscode.Disposable {
    private running: AbortController | undefined;

    constructor(private readonly server: Server) {}

    /** Returns true if it has learned. */
    async learn(): Promise<boolean> {
        if (this.running) throw new Error('it is learning from the history already');
        const folder = await pickTrustedFolder();
        if (!folder) return false;
        const me = await mailOf(folder.uri.fsPath);
        const detail =
            'Hone learns what was written in the last 1,000 commits, and keeps that only if it ' +
            'completes more of the newest changes, which it does not learn, than what serves ' +
            'now. On two cores this takes half an hour and more, at low priority. You ' +
            'can stop it, and it continues from there when you start it again. “Hone: Roll ' +
            'Back the Adapter” takes back what it learned.';
        const picked = await confirm(
            'information',
            `Learn from the history of ${folder.name}?`,
            detail,
            ...(me === undefined ? [ALL] : [ALL, MINE]),
        );
        if (!picked) return false;
        const author = picked === MINE ? me : undefined;
        const said = await this.learnFrom(folder.uri.fsPath, author);
        if (said === undefined) return false;
        void say('information', `Hone: ${said}`);
        return true;
    }

    /** What `hone` says at the end; `undefined` if the user stopped it. */
    private async learnFrom(
        folder: string,
        author: string | undefined,
    ): Promise<string | undefined> {
        const program = this.server.program();
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
                const seen = new HistoryLearning();
                const take = (line: string): void => {
                    const step = seen.take(line);
                    if (step) progress.report(step);
                };
                await run(program, learnHistory(folder, author), take, {
                    signal: abort.signal,
                    isBackground: true,
                });
                return seen.outcome;
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
    const git = onPath('git', thisMachine());
    if (git === undefined) return undefined;
    try {
        const mail = await ask(git, ['-C', folder, 'config', 'user.email']);
        return mail.trim() || undefined;
    } catch {
        return undefined;
    }
}
