// Sends the server its own settings through `hone config set`. config.toml remains their single
// owner for every editor.

import * as vscode from 'vscode';
import { send, serverKeys, type Values } from './core/configuration';
import { ask } from './core/program';
import { say } from './say';
import type { Server } from './server';
import { affects, setByUser } from './settings';

export class Configurator implements vscode.Disposable {
    private readonly keys: string[];
    private readonly listeners: vscode.Disposable[];
    /**
     * The last change. Changes run one after the other, because each reads what the one before
     * wrote.
     */
    private last: Promise<void> = Promise.resolve();
    private sent: Values = {};
    /** The refusals that were reported last. */
    private told = '';

    constructor(
        private readonly server: Server,
        manifest: unknown,
    ) {
        this.keys = serverKeys(manifest);
        this.listeners = [
            vscode.workspace.onDidChangeConfiguration((event) => {
                if (this.keys.some((key) => affects(event, key))) this.update();
            }),
            server.onState(({ kind }) => {
                if (kind === 'running') this.update();
            }),
        ];
    }

    dispose(): void {
        for (const listener of this.listeners) listener.dispose();
    }

    private update(): void {
        this.last = this.last
            .then(() => this.apply())
            .catch((error: Error) => {
                void say('error', `Hone: ${error.message}`);
            });
    }

    private async apply(): Promise<void> {
        const set = setByUser(this.keys);
        const run = (args: readonly string[]) => ask(this.server.program(), args);
        const { needsRestart, refusals, values } = await send(run, set, this.sent);
        this.sent = values;
        this.report(refusals);
        if (needsRestart) void this.offerRestart();
    }

    /** What is refused is sent again at every change and every connection, and told once. */
    private report(refusals: readonly string[]): void {
        const told = refusals.join('. ');
        if (told !== '' && told !== this.told) {
            void say('error', `Hone: ${told}`);
        }
        this.told = told;
    }

    private async offerRestart(): Promise<void> {
        const now = 'Restart Now';
        const picked = await say(
            'information',
            'Hone: this setting takes effect when the server restarts.',
            now,
        );
        if (picked === now) await this.server.restart();
    }
}
