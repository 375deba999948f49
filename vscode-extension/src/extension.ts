// The extension's entry point, which connects its parts.

import * as vscode from 'vscode';
import { registerCommands } from './commands';
import { Configurator } from './configurator';
import { askFor } from './firstrun';
import { Focus } from './focus';
import { registerKeys } from './keys';
import { NextEdits } from './nextEdit';
import { Pages } from './pages';
import { Provider } from './provider';
import { Recorder } from './recorder';
import { Server } from './server';
import { affects } from './settings';
import { needOf } from './core/need';
import { problemMessage, Problems } from './core/problems';
import { Thinking } from './core/status';
import { say } from './say';
import { StatusBar } from './statusbar';
import { Walkthrough } from './walkthrough';
import { WarmStart } from './warmStart';

let running: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
    const output = vscode.window.createOutputChannel('Hone', { log: true });
    const server = new Server(context.extensionPath, output);
    running = server;
    const statusBar = new StatusBar(server);
    const thinking = new Thinking((on) => statusBar.setThinking(on));
    const nextEdits = new NextEdits(server);
    const provider = new Provider(
        server,
        thinking,
        (reason) => statusBar.noteReason(reason),
        (document) => nextEdits.isLastChangeOf(document),
    );
    const pages = new Pages(server, provider);
    const recorder = new Recorder(server, provider);
    const warmStart = new WarmStart(server);
    const walkthrough = new Walkthrough(context.globalState, server);
    context.subscriptions.push(
        output,
        server,
        statusBar,
        thinking,
        provider,
        new Focus(server),
        nextEdits,
        provider.onPart(() => nextEdits.acceptedPart()),
        server.onAccepted(() => nextEdits.accepted()),
        pages,
        recorder,
        warmStart,
        new Configurator(server, context.extension.packageJSON),
        ...registerKeys(provider),
        ...registerCommands({
            server,
            provider,
            pages,
            recorder,
            warmStart,
            walkthrough,
            output,
            extensionUri: context.extensionUri,
        }),
        showEachProblemOnce(server),
        retryOnFocus(server),
        walkthrough,
        vscode.workspace.onDidChangeConfiguration((event) => {
            if (affects(event, 'path')) void server.start();
        }),
    );
    // This is not awaited, because a large model takes long to load and the commands work already.
    void server.start();
}

/** The editor awaits this, so that the server learns of the end. */
export async function deactivate(): Promise<void> {
    await running?.stop();
}

/** What was wrong may be fixed in another window or in a terminal. */
function retryOnFocus(server: Server): vscode.Disposable {
    return vscode.window.onDidChangeWindowState(({ focused }) => {
        if (focused) void server.retry();
    });
}

/** The status bar keeps showing a problem after its message has gone. */
function showEachProblemOnce(server: Server): vscode.Disposable {
    const problems = new Problems();
    return server.onState(async (state) => {
        const problem = problems.news(state, Date.now());
        if (problem === undefined) return;
        const need = needOf(problem);
        // A list of models that cannot be had is an error like any other.
        if (need && (await askFor(need, server).catch(() => false))) return;
        const [title, command] = remedy(server, problem);
        const picked = await say('error', problemMessage(problem), title);
        if (picked) await vscode.commands.executeCommand(command);
    });
}

function remedy(server: Server, problem: string): [title: string, command: string] {
    if (server.locate().path === undefined) return ['Doctor', 'hone.doctor'];
    if (problem.includes('hone model pull')) return ['Get a Model', 'hone.model'];
    return ['Doctor', 'hone.doctor'];
}
