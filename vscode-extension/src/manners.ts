// How Hone behaves here: why nothing is shown, how eager it is, and for how long it is silent.

import * as vscode from 'vscode';
import { canShow, type Reason } from './core/reason';
import { snoozeRequest, type Snooze } from './core/protocol';
import { pick } from './picker';
import { say } from './say';
import type { Server } from './server';
import { eagerness, setEagerness } from './settings';

/** Says why the last request ended as it did, and offers what changes it. */
export async function why(reason: Reason | undefined): Promise<void> {
    if (!reason) {
        const text = 'Hone: nothing was asked in this file yet';
        void say('information', text);
        return;
    }
    const [again, copy] = ['Show It All the Same', 'Copy the Command'];
    const { sentence, remedy } = reason;
    const choices = [...(canShow(reason) ? [again] : []), ...(remedy === undefined ? [] : [copy])];
    const text = [
        `Hone: ${sentence}`,
        ...(remedy === undefined ? [] : [`To change it: ${remedy}`]),
    ];
    const picked = await say('information', text.join(' '), ...choices);
    if (picked === again) {
        // The click has put the focus onto the message.
        await vscode.commands.executeCommand('workbench.action.focusActiveEditorGroup');
        await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
    } else if (picked === copy && remedy !== undefined) {
        await vscode.env.clipboard.writeText(remedy);
    }
}

const EAGERNESS = [
    { label: 'quiet', detail: 'Fewer offers, after a longer pause' },
    { label: 'balanced', detail: 'What suits most people' },
    { label: 'eager', detail: 'More offers, and sooner; you accept fewer of them' },
];

export async function pickEagerness(): Promise<void> {
    const now = eagerness();
    const entries = EAGERNESS.map((entry) => ({
        ...entry,
        ...(entry.label === now && { description: 'now' }),
    }));
    const title = 'Hone: how readily it makes offers';
    const picked = await pick(title, entries, ({ label }) => label === now);
    if (picked) await setEagerness(picked.label);
}

interface SnoozeEntry extends vscode.QuickPickItem {
    snooze: Snooze;
}

export async function pickSnooze(server: Server): Promise<void> {
    const client = server.client();
    const document = vscode.window.activeTextEditor?.document;
    const folder = document && vscode.workspace.getWorkspaceFolder(document.uri);
    const entries: SnoozeEntry[] = [
        { label: 'For 5 minutes', snooze: { what: 'everything', seconds: 300 } },
        { label: 'For an hour', snooze: { what: 'everything', seconds: 3600 } },
        { label: 'Until Hone starts again', snooze: { what: 'everything' } },
        ...(document ? [{ label: 'In this file', snooze: fileSnooze(document.uri) }] : []),
        ...(folder
            ? [
                  {
                      label: `In the folder ${folder.name}`,
                      snooze: { what: 'folder' as const, path: folder.uri.fsPath },
                  },
              ]
            : []),
        { label: 'End the snooze', snooze: { what: 'nothing' } },
    ];
    const title = 'Hone: no completions as you type; those that you ask for are still answered';
    const picked = await vscode.window.showQuickPick(entries, { title });
    if (picked) await client.sendRequest(snoozeRequest, picked.snooze);
}

/** The server knows a file of this machine by its path, and others by their address. */
function fileSnooze(uri: vscode.Uri): Snooze {
    const isLocal = uri.scheme === 'file' && uri.authority === '';
    return { what: 'file', path: isLocal ? uri.fsPath : uri.toString() };
}
