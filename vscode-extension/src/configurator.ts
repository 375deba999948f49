// Sends the server its own settings through `hone config set`. config.toml remains their single
// owner for every editor.

import * as vscode from 'vscode';
import { changes, oldKeys, serverKeys, underTodaysNames, type Values } from './core/configuration';
import { ask } from './core/program';
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

    constructor(
        private readonly server: Server,
        manifest: unknown,
    ) {
        this.keys = [...serverKeys(manifest), ...oldKeys];
        this.listeners = [
            vscode.workspace.onDidChangeConfiguration((event) => {
                if (this.keys.some((key) => affects(event, key))) this.send();
            }),
            server.onState(({ kind }) => {
                if (kind === 'running') this.send();
            }),
        ];
    }

    dispose(): void {
        for (const listener of this.listeners) listener.dispose();
    }

    private send(): void {
        this.last = this.last
            .then(() => this.apply())
            .catch((error: Error) => {
                void vscode.window.showErrorMessage(`Hone: ${error.message}`);
            });
    }

    private async apply(): Promise<void> {
        const set = underTodaysNames(setByUser(this.keys));
        if (Object.keys({ ...set, ...this.sent }).length === 0) return;
        const path = this.server.program();
        const file: unknown = JSON.parse(await ask(path, ['config', 'get', '--json']));
        let restart = false;
        for (const { key, value } of changes(set, this.sent, file)) {
            const text = value === undefined ? [] : [JSON.stringify(value)];
            const answer = JSON.parse(
                await ask(path, ['config', 'set', key, ...text, '--json']),
            ) as { restart: boolean };
            restart ||= answer.restart;
        }
        this.sent = set;
        if (restart) void this.offerRestart();
    }

    private async offerRestart(): Promise<void> {
        const now = 'Restart Now';
        const picked = await vscode.window.showInformationMessage(
            'Hone: this setting takes effect when the server restarts.',
            now,
        );
        if (picked === now) await this.server.restart();
    }
}
