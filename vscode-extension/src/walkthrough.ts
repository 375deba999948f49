// Tells the walkthrough which of its steps are done.

import * as vscode from 'vscode';
import { STEPS, Ticks, type Step } from './core/walkthrough';
import type { Server } from './server';

/** VS Code has read the steps by this time after it has opened the page. */
const READ_AFTER_MS = 1_000;

/** What is done stays so in other windows and after a restart. */
function memory(step: Step): string {
    return `walkthrough.${step}`;
}

export class Walkthrough implements vscode.Disposable {
    private readonly ticks = new Ticks((context, value) => {
        void vscode.commands.executeCommand('setContext', context, value);
    });
    private readonly listeners: vscode.Disposable[];
    private timer: NodeJS.Timeout | undefined;

    constructor(
        private readonly memento: vscode.Memento,
        server: Server,
    ) {
        for (const step of STEPS.filter((step) => memento.get(memory(step), false))) {
            this.ticks.done(step);
        }
        this.listeners = [
            server.onState(({ kind }) => {
                if (server.locate().path !== undefined) this.ticks.done('server');
                if (kind === 'running') this.ticks.done('model');
            }),
            server.onAccepted(() => this.done('keys')),
            vscode.window.tabGroups.onDidChangeTabs(({ opened, changed }) => {
                // A page of VS Code's own has no input that an extension knows.
                if (![...opened, ...changed].some(({ input }) => input === undefined)) return;
                this.ticks.pageOpened();
                clearTimeout(this.timer);
                this.timer = setTimeout(() => this.ticks.pageOpened(), READ_AFTER_MS);
            }),
        ];
    }

    done(step: Step): void {
        this.ticks.done(step);
        void this.memento.update(memory(step), true);
    }

    dispose(): void {
        clearTimeout(this.timer);
        for (const listener of this.listeners) listener.dispose();
    }
}
