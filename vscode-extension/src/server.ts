// The server of this window. It connects `supervisor.ts` with the editor.

import { homedir } from 'node:os';
import * as vscode from 'vscode';
import { HoneClient } from './client';
import { locate, type Located } from './core/locate';
import { ask } from './core/program';
import { didChangeStatus } from './core/protocol';
import { thisMachine } from './core/search';
import { programPath } from './settings';
import { isLoading, type ServerState, type StatusLine } from './core/status';
import { Supervisor } from './core/supervisor';

export class Server implements vscode.Disposable {
    private readonly supervisor: Supervisor<HoneClient>;
    private readonly stateEmitter = new vscode.EventEmitter<ServerState>();
    private readonly lineEmitter = new vscode.EventEmitter<StatusLine>();
    private readonly acceptedEmitter = new vscode.EventEmitter<void>();
    private line: StatusLine | undefined;

    readonly onState = this.stateEmitter.event;
    readonly onLine = this.lineEmitter.event;
    /** Fires when an offer or a next edit was accepted. */
    readonly onAccepted = this.acceptedEmitter.event;

    constructor(
        private readonly extensionFolder: string,
        output: vscode.LogOutputChannel,
    ) {
        this.supervisor = new Supervisor({
            locate: () => this.locate(),
            connect: (path, lost) => {
                const accepted = (): void => this.acceptedEmitter.fire();
                const client = new HoneClient({ path, output, lost, accepted });
                client.onNotification(didChangeStatus, (line) => {
                    this.line = line;
                    this.lineEmitter.fire(line);
                });
                return client;
            },
            changed: (state) => {
                if (state.kind === 'failed') output.error(state.problem);
                if (state.kind === 'running') {
                    output.info(`Connected to ${this.locate().path}, version ${this.version()}`);
                }
                // What the last server reported does not hold for the next one.
                if (state.kind !== 'running') this.line = undefined;
                this.stateEmitter.fire(state);
            },
        });
    }

    get state(): ServerState {
        return this.supervisor.state;
    }

    /** The client, while the server answers. */
    get connected(): HoneClient | undefined {
        return this.supervisor.connected;
    }

    private version(): string | undefined {
        return this.connected?.initializeResult?.serverInfo?.version;
    }

    locate(): Located {
        return locate({
            configured: programPath(),
            extensionFolder: this.extensionFolder,
            homeFolder: homedir(),
            arch: process.arch,
            ...thisMachine(),
        });
    }

    /** The client. While the server does not answer, this throws an error that says what to do. */
    client(): HoneClient {
        const { connected } = this;
        if (!connected) throw new Error('the server is not running; `Hone: Doctor` says why');
        return connected;
    }

    /** Waits until the model that the server is loading is in memory, or until the server ends. */
    async loaded(): Promise<void> {
        const listeners: vscode.Disposable[] = [];
        await new Promise<void>((resolve) => {
            const look = (): void => {
                if (!isLoading(this.line)) resolve();
            };
            listeners.push(this.onLine(look), this.onState(look));
            look();
        });
        for (const listener of listeners) listener.dispose();
    }

    /** The program's path. If there is none, this throws an error that says what to do. */
    program(): string {
        const located = this.locate();
        if (located.path === undefined) throw new Error(located.problem);
        return located.path;
    }

    stop(): Promise<void> {
        return this.supervisor.stop();
    }

    /** Starts the server anew, whatever its state is. */
    start(): Promise<void> {
        return this.supervisor.restart();
    }

    /** Starts the server again if it has failed. */
    retry(): Promise<void> {
        return this.supervisor.retry();
    }

    /** Restarts the daemon, which all windows share. The other windows reconnect by themselves. */
    async restart(): Promise<void> {
        await this.stop();
        const { path } = this.locate();
        // If the daemon cannot be stopped, the start reports why.
        if (path !== undefined) await ask(path, ['stop']).catch(() => undefined);
        await this.start();
    }

    dispose(): void {
        void this.stop();
        this.stateEmitter.dispose();
        this.lineEmitter.dispose();
        this.acceptedEmitter.dispose();
    }
}
