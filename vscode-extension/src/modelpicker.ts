// Choosing a model, fetching it if it is not here.

import * as vscode from 'vscode';
import { parseModels, percentHere, type Model } from './models';
import { ask, run } from './program';
import type { Server } from './server';

/** `hone model list` is asked this often how far a pull has come. */
const POLL_MS = 1_000;

export async function pickModel(server: Server): Promise<void> {
    const path = server.program();
    const models = parseModels(await ask(path, ['model', 'list']));
    const picked = await vscode.window.showQuickPick(models.map(entry), { title: 'Hone: the model that completes' });
    if (!picked) return;
    const { model } = picked;
    if (model.here !== 'yes' && !(await pull(path, model))) return;
    await ask(path, ['model', 'use', model.name]);
    // The daemon serves one model for its life.
    await server.restart();
}

function entry(model: Model): vscode.QuickPickItem & { model: Model } {
    const here = model.here === 'yes' ? 'here' : model.here === 'no' ? 'to be fetched' : model.here;
    return {
        label: model.configured ? `$(check) ${model.name}` : model.name,
        description: `${model.size}, ${here}`,
        detail: model.licence,
        model,
    };
}

/** False if the user stopped it; what has come is kept for the next time. */
async function pull(path: string, model: Model): Promise<boolean> {
    const options = {
        location: vscode.ProgressLocation.Notification,
        title: `Hone: fetching ${model.name} (${model.size})`,
        cancellable: true,
    };
    return vscode.window.withProgress(options, async (progress, token) => {
        const abort = new AbortController();
        token.onCancellationRequested(() => abort.abort());
        let percent = 0;
        const poll = setInterval(() => {
            void ask(path, ['model', 'list']).then((table) => {
                const now = parseModels(table).find(({ name }) => name === model.name);
                const increment = (now ? percentHere(now) : 0) - percent;
                percent += increment;
                progress.report({ increment, message: `${percent} %` });
            }, () => undefined);
        }, POLL_MS);
        try {
            await run(path, ['model', 'pull', model.name], undefined, abort.signal);
            return true;
        } catch (error) {
            if (token.isCancellationRequested) return false;
            throw error;
        } finally {
            clearInterval(poll);
        }
    });
}
