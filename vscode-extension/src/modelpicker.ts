// The command that picks a model and downloads it if it is not on this machine.

import * as vscode from 'vscode';
import { Pull, parseModels, size, type Model } from './core/models';
import { ask, run } from './core/program';
import type { Server } from './server';

export async function pickModel(server: Server): Promise<void> {
    const path = server.program();
    const models = parseModels(await ask(path, ['model', 'list', '--json']));
    const picked = await vscode.window.showQuickPick(models.map(entry), {
        title: 'Hone: the model that completes',
    });
    if (!picked) return;
    const { model } = picked;
    if (!model.present && !(await pull(path, model))) return;
    await ask(path, ['model', 'use', model.name]);
    // A daemon serves only one model, so another model needs another daemon.
    await server.restart();
}

function entry(model: Model): vscode.QuickPickItem & { model: Model } {
    return {
        label: model.configured ? `$(check) ${model.name}` : model.name,
        description: `${size(model)}, ${model.present ? 'downloaded' : 'not downloaded yet'}`,
        detail: model.licence,
        model,
    };
}

/** Returns false if the user cancelled. What was downloaded so far is kept for the next time. */
async function pull(path: string, model: Model): Promise<boolean> {
    const options = {
        location: vscode.ProgressLocation.Notification,
        title: `Hone: downloading ${model.name} (${size(model)})`,
        cancellable: true,
    };
    return vscode.window.withProgress(options, async (progress, token) => {
        const abort = new AbortController();
        token.onCancellationRequested(() => abort.abort());
        const pull = new Pull();
        const take = (line: string): void => {
            const step = pull.take(line);
            if (step) progress.report(step);
        };
        try {
            await run(path, ['model', 'pull', model.name, '--json'], take, abort.signal);
            return true;
        } catch (error) {
            if (token.isCancellationRequested) return false;
            throw error;
        }
    });
}
