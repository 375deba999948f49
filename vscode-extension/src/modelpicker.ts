// The command that picks a model, and downloads it or takes it from the disk.

import * as vscode from 'vscode';
import {
    addedModel,
    bySuggestion,
    description,
    downloadEnvironment,
    parseModels,
    Pull,
    size,
    type Model,
} from './core/models';
import { ask, run } from './core/program';
import { pick } from './picker';
import { say } from './say';
import type { Server } from './server';
import { downloadRoute } from './settings';

/** An entry of the list. One is no model: it asks for a file. */
interface Entry extends vscode.QuickPickItem {
    model?: Model;
}

const AGAIN = 'Try Again';
const FROM_FILE = 'Use a File';

const FILE_ENTRY: Entry = {
    label: '$(folder-opened) A file on this disk',
    description: 'where there is no network',
    detail: 'One of the models of this list, from another machine; its checksum is compared.',
};

/** The line above the larger models, and those whose size the hub has yet to tell. */
const OTHERS: Entry = { label: 'other models', kind: vscode.QuickPickItemKind.Separator };

export async function pickModel(server: Server): Promise<void> {
    const path = server.program();
    const title = 'Hone: the model that completes';
    const picked = await pick(title, choices(path), ({ model }) => model?.configured === true);
    if (!picked) return;
    const name = picked.model ? await fetched(path, picked.model) : await fromFile(path);
    if (name !== undefined) await serve(server, name);
}

/** The model that is to serve, if its file is not here. */
export async function neededModel(server: Server): Promise<Model | undefined> {
    const models = parseModels(await ask(server.program(), ['model', 'list', '--json']));
    return models.find(({ configured, present }) => configured && !present);
}

/** Downloads a model and lets it serve, unless the user cancels that. */
export async function downloadNeeded(server: Server, model: Model): Promise<void> {
    const name = await fetched(server.program(), model);
    if (name !== undefined) await serve(server, name);
}

async function serve(server: Server, name: string): Promise<void> {
    await ask(server.program(), ['model', 'use', name]);
    // A daemon serves only one model, so another model needs another daemon.
    await server.restart();
    await server.loaded();
    if (server.connected) void offerToTry(name);
}

async function offerToTry(name: string): Promise<void> {
    const tryIt = 'Try It';
    const picked = await say('information', `Hone is ready: ${name}.`, tryIt);
    if (picked) await vscode.commands.executeCommand('hone.tryIt');
}

async function choices(path: string): Promise<Entry[]> {
    const models = parseModels(await ask(path, ['model', 'list', '--json']));
    const { first, others } = bySuggestion(models);
    const entries = [...first.map(entry), FILE_ENTRY];
    if (others.length > 0) entries.push(OTHERS, ...others.map(entry));
    return entries;
}

function entry(model: Model): Entry {
    return {
        label: model.configured ? `$(check) ${model.name}` : model.name,
        description: description(model),
        detail: model.licence,
        model,
    };
}

/** Brings the model here. Returns the name of the model that is here then, if one is. */
async function fetched(path: string, model: Model): Promise<string | undefined> {
    if (model.present) return model.name;
    for (;;) {
        try {
            return (await pull(path, model)) ? model.name : undefined;
        } catch (error) {
            // Its reason names what was asked and by which way. What has arrived is kept.
            const text = `Hone: ${(error as Error).message}`;
            const next = await say('error', text, AGAIN, FROM_FILE);
            if (next === FROM_FILE) return fromFile(path);
            if (next !== AGAIN) return undefined;
        }
    }
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
        const env = downloadEnvironment(process.env, downloadRoute());
        try {
            await run(path, ['model', 'pull', model.name, '--json'], take, {
                signal: abort.signal,
                env,
            });
            return true;
        } catch (error) {
            if (token.isCancellationRequested) return false;
            throw error;
        }
    });
}

/** Asks for a file and takes it. Returns the name of the model that it is. */
async function fromFile(path: string): Promise<string | undefined> {
    const chosen = await vscode.window.showOpenDialog({
        title: 'Hone: the file of a model',
        filters: { 'Model files': ['gguf'] },
    });
    const file = chosen?.[0];
    if (!file) return undefined;
    const options = {
        location: vscode.ProgressLocation.Notification,
        title: 'Hone: comparing the checksum, and copying',
    };
    let name: string | undefined;
    const take = (line: string): void => {
        name = addedModel(line);
    };
    await vscode.window.withProgress(options, () =>
        run(path, ['model', 'add', file.fsPath, '--json'], take),
    );
    return name;
}
