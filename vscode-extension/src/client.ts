// The language client: Hone's wire, without the editor's own idea of what to do
// with an offer or with a connection that ends.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import * as vscode from 'vscode';
import {
    CloseAction,
    ErrorAction,
    InlineCompletionRequest,
    LanguageClient,
    type DynamicFeature,
    type StaticFeature,
} from 'vscode-languageclient/node';
import { lastLine } from './core/program';
import type { Connection } from './core/supervisor';

/** Files on a disk and files not saved yet; never a diff's other side or a log. */
export const DOCUMENTS = [{ scheme: 'file' }, { scheme: 'untitled' }];

/** A trace, which a user's setting can ask for, holds the messages whole: documents. */
const NO_TRACE = {
    logLevel: vscode.LogLevel.Off,
    onDidChangeLogLevel: () => new vscode.Disposable(() => undefined),
    trace: () => undefined,
} as unknown as vscode.LogOutputChannel;

export interface ClientSource {
    path: string;
    output: vscode.LogOutputChannel;
    /** The connection ended and nobody had asked for it. */
    lost(): void;
}

export class HoneClient extends LanguageClient implements Connection {
    lastWord: string | undefined;

    constructor({ path, output, lost }: ClientSource) {
        const start = async () => spawn(path, ['lsp'], { stdio: 'pipe' });
        super('hone', 'Hone', start, {
            documentSelector: DOCUMENTS,
            outputChannel: output,
            traceOutputChannel: NO_TRACE,
            initializationFailedHandler: () => false,
            errorHandler: {
                error: () => ({ action: ErrorAction.Continue, handled: true }),
                // Starting again is the supervisor's: it waits longer each time.
                closed: () => {
                    lost();
                    return { action: CloseAction.DoNotRestart, handled: true, message: 'The server’s connection ended' };
                },
            },
            stdioOptions: {
                // Holds the protocol's messages: documents, so nothing for a log.
                stdout: () => undefined,
                stderr: (stream, channel) => {
                    createInterface({ input: stream }).on('line', (line) => {
                        this.lastWord = lastLine(line) ?? this.lastWord;
                        channel.warn(line);
                    });
                },
            },
        });
    }

    /** Into the output alone: what the user must know, the status bar and one message say. */
    override error(message: string, data?: unknown): void {
        super.error(message, data, false);
    }

    /** The provider of offers is registered once, not at every connection: see `provider.ts`. */
    override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
        const method = 'registrationType' in feature ? feature.registrationType.method : undefined;
        const replaced = method === InlineCompletionRequest.method;
        super.registerFeature(replaced ? announced(feature) : feature);
    }
}

/** Tells the server that the editor can do it, and does nothing. */
function announced(feature: StaticFeature | DynamicFeature<unknown>): StaticFeature {
    return {
        fillClientCapabilities: (capabilities) => feature.fillClientCapabilities(capabilities),
        initialize: () => undefined,
        getState: () => ({ kind: 'static' }),
        clear: () => undefined,
    };
}
