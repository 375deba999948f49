// Hone's item in the status bar.

import * as vscode from 'vscode';
import { statusRequest } from './core/protocol';
import { isOffer, type Reason } from './core/reason';
import type { Server } from './server';
import { isEnabled, isLanguageOn } from './settings';
import { statusItem, type StatusLine } from './core/status';

/** The item stands left of most others on the right side. */
const PRIORITY = 100;

export class StatusBar implements vscode.Disposable {
    private readonly item: vscode.StatusBarItem;
    private line: StatusLine | undefined;
    private paused = false;
    private thinking = false;
    private silence: Reason | undefined;
    private readonly listeners: vscode.Disposable[];

    constructor(private readonly server: Server) {
        this.item = vscode.window.createStatusBarItem(
            'hone',
            vscode.StatusBarAlignment.Right,
            PRIORITY,
        );
        this.item.name = 'Hone';
        this.item.command = 'hone.menu';
        this.listeners = [
            server.onState((state) => {
                // What the last server reported does not hold for the next one.
                if (state.kind !== 'running') this.line = undefined;
                this.refresh();
            }),
            server.onLine((line) => {
                this.line = line;
                this.refresh();
                void this.askWhetherPaused();
            }),
            vscode.window.onDidChangeActiveTextEditor(() => {
                // Why nothing was shown in one document says nothing about another.
                this.silence = undefined;
                this.refresh();
            }),
            vscode.workspace.onDidChangeConfiguration(() => this.refresh()),
        ];
        this.refresh();
        this.item.show();
    }

    setThinking(thinking: boolean): void {
        this.thinking = thinking;
        this.refresh();
    }

    noteReason(reason: Reason): void {
        const silence = isOffer(reason) ? undefined : reason;
        if (silence?.sentence === this.silence?.sentence) return;
        this.silence = silence;
        this.refresh();
    }

    private async askWhetherPaused(): Promise<void> {
        const status = await this.server.connected
            ?.sendRequest(statusRequest)
            .catch(() => undefined);
        this.paused = status?.learner.state === 'off';
        this.refresh();
    }

    dispose(): void {
        for (const listener of this.listeners) listener.dispose();
        this.item.dispose();
    }

    private refresh(): void {
        const { server, line, paused, thinking, silence } = this;
        const language = vscode.window.activeTextEditor?.document.languageId;
        const languageOff =
            language !== undefined && !isLanguageOn(language) ? language : undefined;
        const { state, text, tooltip } = statusItem({
            server: server.state,
            line,
            paused,
            thinking,
            enabled: isEnabled(),
            languageOff,
            ...(silence !== undefined && { silence }),
        });
        this.item.text = text;
        this.item.tooltip = `Hone: ${tooltip}`;
        this.item.accessibilityInformation = { label: `Hone: ${state}` };
        this.item.backgroundColor =
            state === 'error' ? new vscode.ThemeColor('statusBarItem.errorBackground') : undefined;
        // What is invoked is answered, even if offers as the user types are off.
        const ready = server.state.kind === 'running';
        void vscode.commands.executeCommand('setContext', 'hone.ready', ready);
    }
}
