// Keeps one server running for this window: finds it, starts it, checks who
// answers, starts it again when it dies, and says so when it cannot.

import { accessSync, constants, statSync } from 'node:fs';
import { homedir } from 'node:os';
import * as vscode from 'vscode';
import { Backoff } from './backoff';
import { HoneClient } from './client';
import { locate, type Located } from './locate';
import { didChangeStatus } from './protocol';
import { programPath } from './settings';
import type { ServerState, StatusLine } from './status';
import { serverProblem } from './version';

export class Server implements vscode.Disposable {
    private client: HoneClient | undefined;
    private current: ServerState = { kind: 'stopped' };
    private readonly backoff = new Backoff();
    private restartTimer: NodeJS.Timeout | undefined;
    private readonly stateEmitter = new vscode.EventEmitter<ServerState>();
    private readonly lineEmitter = new vscode.EventEmitter<StatusLine>();

    readonly onState = this.stateEmitter.event;
    readonly onLine = this.lineEmitter.event;

    constructor(
        private readonly extensionFolder: string,
        private readonly output: vscode.LogOutputChannel,
    ) {}

    get state(): ServerState {
        return this.current;
    }

    /** The client, while the server answers. */
    get connected(): HoneClient | undefined {
        return this.current.kind === 'running' ? this.client : undefined;
    }

    locate(): Located {
        return locate({
            configured: programPath(),
            extensionFolder: this.extensionFolder,
            homeFolder: homedir(),
            platform: process.platform,
            arch: process.arch,
            searchPath: process.env['PATH'] ?? '',
            isExecutable,
        });
    }

    /** Starts anew, whatever was before. */
    async restart(): Promise<void> {
        await this.stop();
        this.backoff.reset();
        await this.start();
    }

    async stop(): Promise<void> {
        clearTimeout(this.restartTimer);
        const client = this.client;
        this.client = undefined;
        this.become({ kind: 'stopped' });
        // A client that never came up has nothing to end, and says so by throwing.
        await client?.dispose().catch(() => undefined);
    }

    dispose(): void {
        void this.stop();
        this.stateEmitter.dispose();
        this.lineEmitter.dispose();
    }

    /** `again`: after a death, when a failure may pass, such as a daemon that has not ended yet. */
    private async start(again = false): Promise<void> {
        const located = this.locate();
        if (located.path === undefined) {
            this.become({ kind: 'failed', problem: located.problem });
            return;
        }
        const { path } = located;
        const client = new HoneClient({ path, output: this.output, lost: () => this.lost(client) });
        this.client = client;
        this.become({ kind: 'starting' });
        client.onNotification(didChangeStatus, (line) => this.lineEmitter.fire(line));
        try {
            await client.start();
        } catch (error) {
            if (this.client !== client) return;
            if (again) this.startLater(client);
            else this.become({ kind: 'failed', problem: client.lastWord ?? (error as Error).message });
            return;
        }
        if (this.client !== client) return;
        const problem = serverProblem(client.initializeResult?.serverInfo, path);
        if (problem) {
            await this.stop();
            this.become({ kind: 'failed', problem });
            return;
        }
        this.become({ kind: 'running' });
    }

    private lost(client: HoneClient): void {
        // One that ends while it starts is told by `start`.
        if (this.client === client && this.current.kind === 'running') this.startLater(client);
    }

    private startLater(client: HoneClient): void {
        const delay_ms = this.backoff.died(Date.now());
        if (delay_ms === undefined) {
            const said = client.lastWord ? ` (${client.lastWord})` : '';
            this.become({ kind: 'failed', problem: `The server keeps ending${said}; see the output "Hone"` });
            return;
        }
        this.become({ kind: 'starting' });
        this.restartTimer = setTimeout(() => {
            void client.dispose().catch(() => undefined);
            void this.start(true);
        }, delay_ms);
    }

    private become(state: ServerState): void {
        this.current = state;
        if (state.kind === 'failed') this.output.error(state.problem);
        this.stateEmitter.fire(state);
    }
}

function isExecutable(path: string): boolean {
    try {
        accessSync(path, constants.X_OK);
        return statSync(path).isFile();
    } catch {
        return false;
    }
}
