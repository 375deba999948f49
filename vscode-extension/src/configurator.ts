// Tells the server the settings that are its own, through `hone config set`: config.toml stays
// their one owner, for every editor.

import * as vscode from 'vscode';
import { changes, serverKeys, type Values } from './core/configuration';
import { ask } from './core/program';
import type { Server } from './server';
import { affects, setByUser } from './settings';

export class Configurator implements vscode.Disposable {
    private readonly keys: string[];
    private readonly listeners: vscode.Disposable[];
    /** One after the other: each reads what the one before has written. */
    private last: Promise<void> = Promise.resolve();
    private told: Values = {};

    constructor(
        private readonly server: Server,
        manifest: unknown,
    ) {
        this.keys = serverKeys(manifest);
        this.listeners = [
            vscode.workspace.onDidChangeConfiguration((event) => {
                if (this.keys.some((key) => affects(event, key))) this.tell();
            }),
            server.onState(({ kind }) => {
                if (kind === 'running') this.tell();
            }),
        ];
    }

    dispose(): void {
        for (const listener of this.listeners) listener.dispose();
    }

    private tell(): void {
        this.last = this.last.then(() => this.apply()).catch((error: Error) => {
            void vscode.window.showErrorMessage(`Hone: ${error.message}`);
        });
    }

    private async apply(): Promise<void> {
        const set = setByUser(this.keys);
        if (Object.keys({ ...set, ...this.told }).length === 0) return;
        const path = this.server.program();
        const file: unknown = JSON.parse(await ask(path, ['config', 'get', '--json']));
        let restart = false;
        for (const { key, value } of changes(set, this.told, file)) {
            const text = value === undefined ? [] : [JSON.stringify(value)];
            const answer = JSON.parse(await ask(path, ['config', 'set', key, ...text, '--json'])) as { restart: boolean };
            restart ||= answer.restart;
        }
        this.told = set;
        if (restart) void this.offerRestart();
    }

    private async offerRestart(): Promise<void> {
        const now = 'Restart Now';
        const picked = await vscode.window.showInformationMessage('Hone: the server takes this setting when it starts again.', now);
        if (picked === now) await this.server.restart();
    }
}
