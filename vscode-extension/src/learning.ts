// Commands that pause learning, go back to an earlier adapter, and forget a file.

import { basename } from 'node:path';
import * as vscode from 'vscode';
import { BASE, parseAdapters, type Adapter } from './core/adapters';
import { ask } from './core/program';
import { forgetRequest, type Forgotten } from './core/protocol';
import { pick } from './picker';
import { confirm, say } from './say';
import type { Server } from './server';

export async function toggleLearning(server: Server): Promise<void> {
    const path = server.program();
    // The setting decides and not the learner's state, because an update under way continues after
    // a pause.
    const setting = await ask(path, ['config', 'get', 'learning.enabled', '--json']);
    const enabled = JSON.parse(setting) as boolean;
    const printed = await ask(path, [enabled ? 'pause' : 'resume']);
    void say('information', `Hone: ${printed.trim()}`);
}

export async function pickAdapter(server: Server): Promise<void> {
    const path = server.program();
    const { active, adapters } = parseAdapters(await ask(path, ['adapter', 'list', '--json']));
    if (adapters.length === 0) {
        const text = 'Hone: nothing was learned yet, so there is nothing to roll back';
        void say('information', text);
        return;
    }
    const entries = [
        entry(undefined, active),
        ...adapters.filter(({ kept }) => kept).map((adapter) => entry(adapter, active)),
    ];
    const title = 'Hone: the adapter that serves from the next completion on';
    const picked = await pick(title, entries.reverse(), ({ version }) => version === active);
    if (!picked || picked.version === active) return;
    const printed = await ask(path, ['adapter', 'use', String(picked.version)]);
    void say('information', `Hone: ${printed.trim()}`);
}

export async function forgetFile(server: Server): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (!document) throw new Error('open the file that should be forgotten');
    const name = basename(document.uri.path);
    const forget = 'Forget';
    const detail =
        'This erases its offers and labels, and every adapter that learned from them. ' +
        'It cannot be undone.';
    const picked = await confirm(
        'warning',
        `Forget what Hone has recorded about ${name}?`,
        detail,
        forget,
    );
    if (picked !== forget) return;
    const client = server.client();
    const uri = client.code2ProtocolConverter.asUri(document.uri);
    const forgotten = await client.sendRequest(forgetRequest, { uri });
    void say('information', `Hone: ${forgottenLine(name, forgotten)}`);
    if (forgotten.adapters_left) {
        void say('warning', `Hone: ${forgotten.adapters_left}`);
    }
}

function forgottenLine(name: string, { events, offers, adapters, serves }: Forgotten): string {
    if (events === 0) return `nothing was recorded about ${name}`;
    const versions = adapters.map((version) => `v${version}`).join(', ');
    const learned = adapters.length === 0 ? '' : `, and ${versions} with them`;
    const now = serves === BASE ? 'the model alone serves' : `v${serves} serves`;
    return `${offers} offer${offers === 1 ? '' : 's'} in ${name} forgotten${learned}; ${now}`;
}

function entry(
    adapter: Adapter | undefined,
    active: number,
): vscode.QuickPickItem & { version: number } {
    const version = adapter?.version ?? BASE;
    const name = adapter ? `v${version}` : 'the model alone';
    const label = version === active ? `$(check) ${name}` : name;
    if (!adapter) return { version, label };
    const parent = adapter.parent === BASE ? 'the model' : `v${adapter.parent}`;
    return {
        version,
        label,
        description: new Date(adapter.created_at).toLocaleString(),
        detail: `${adapter.report.episodes_used} labels, learned from ${parent}`,
    };
}
