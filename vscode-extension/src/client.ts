// The language client. It speaks Hone's protocol and replaces what the library would do with an
// offer and with a connection that ends.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import * as vscode from 'vscode';
import {
    CloseAction,
    ErrorAction,
    InlineCompletionRequest,
    LanguageClient,
    State,
    type DynamicFeature,
    type StaticFeature,
} from 'vscode-languageclient/node';
import { lastLine } from './core/program';
import { ACCEPT_COMMAND } from './core/protocol';
import type { Connection } from './core/supervisor';

/**
 * What a user writes in: files of this machine, of another one and of a repository that is not
 * cloned, files that are not saved yet, and the cells of notebooks, which the client synchronizes
 * by their notebooks. The old side of a diff (`git`), output and logs are not among them, because
 * nobody writes there.
 */
export const DOCUMENTS = [
    { scheme: 'file' },
    { scheme: 'untitled' },
    { scheme: 'vscode-notebook-cell' },
    { scheme: 'vscode-remote' },
    { scheme: 'vscode-vfs' },
];

/**
 * A trace holds whole messages, and so whole documents. This ignores the setting that asks for one.
 */
const NO_TRACE = {
    logLevel: vscode.LogLevel.Off,
    onDidChangeLogLevel: () => new vscode.Disposable(() => undefined),
    trace: () => undefined,
} as unknown as vscode.LogOutputChannel;

/** How long a program that failed to start may take to say why. */
const LAST_WORDS_MS = 1_000;

export interface ClientSource {
    path: string;
    output: vscode.LogOutputChannel;
    /** Is called when the connection ends although nobody asked for it. */
    lost(): void;
    /** Is called when an offer or a next edit was accepted. */
    accepted(): void;
}

export class HoneClient extends LanguageClient implements Connection {
    lastErrorLine: string | undefined;
    private child: ChildProcess | undefined;
    private isEnded = false;

    constructor({ path, output, lost, accepted }: ClientSource) {
        const start = async () => {
            if (this.isEnded) throw new Error('it was ended before it began');
            this.child = spawn(path, ['lsp'], { stdio: 'pipe' });
            return this.child;
        };
        super('hone', 'Hone', start, {
            documentSelector: DOCUMENTS,
            initializationOptions: { didChangeStatus: true },
            outputChannel: output,
            traceOutputChannel: NO_TRACE,
            initializationFailedHandler: () => false,
            middleware: {
                executeCommand: (command, args, next) => {
                    if (command === ACCEPT_COMMAND) accepted();
                    return next(command, args) as unknown;
                },
            },
            errorHandler: {
                error: () => ({ action: ErrorAction.Continue, handled: true }),
                // The supervisor restarts the server, with a longer wait each time.
                closed: () => {
                    lost();
                    return {
                        action: CloseAction.DoNotRestart,
                        handled: true,
                        message: 'The server’s connection ended',
                    };
                },
            },
            stdioOptions: {
                // This stream holds the protocol's messages with documents, which belong in no log.
                stdout: () => undefined,
                stderr: (stream, channel) => {
                    createInterface({ input: stream }).on('line', (line) => {
                        this.lastErrorLine = lastLine(line) ?? this.lastErrorLine;
                        channel.warn(line);
                    });
                },
            },
        });
    }

    /**
     * A program that ends at once says why on stderr, which may be read after the failure to write
     * to it.
     */
    override async start(): Promise<void> {
        try {
            await super.start();
        } catch (error) {
            const stderr = this.child?.stderr;
            if (stderr && !stderr.closed) {
                const signal = AbortSignal.timeout(LAST_WORDS_MS);
                await once(stderr, 'close', { signal }).catch(() => undefined);
            }
            throw error;
        }
    }

    /** The library ends only a client that is up. One that is starting ends with its program. */
    override async dispose(timeout?: number): Promise<void> {
        this.isEnded = true;
        if (this.state === State.Starting) this.child?.kill();
        else await super.dispose(timeout);
    }

    /**
     * Writes to the output channel only. The status bar and one message say what the user must
     * know.
     */
    override error(message: string, data?: unknown): void {
        super.error(message, data, false);
    }

    /** The provider of offers is registered once and not at every connection; see `provider.ts`. */
    override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
        const method = 'registrationType' in feature ? feature.registrationType.method : undefined;
        const replaced = method === InlineCompletionRequest.method;
        super.registerFeature(replaced ? announced(feature) : feature);
    }
}

/** Announces the capability to the server and does nothing else. */
function announced(feature: StaticFeature | DynamicFeature<unknown>): StaticFeature {
    return {
        fillClientCapabilities: (capabilities) => feature.fillClientCapabilities(capabilities),
        initialize: () => undefined,
        getState: () => ({ kind: 'static' }),
        clear: () => undefined,
    };
}
