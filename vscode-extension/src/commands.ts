// The commands of the palette and of the menu in the status bar.

import { basename } from 'node:path';
import * as vscode from 'vscode';
import { tryIt } from './firstrun';
import { pickTrustedFolder } from './folder';
import { forgetFile, pickAdapter, toggleLearning } from './learning';
import { pickModel } from './modelpicker';
import { pickEagerness, pickSnooze, why } from './manners';
import { openMenu } from './menu';
import type { Pages } from './pages';
import type { Provider } from './provider';
import type { Recorder } from './recorder';
import { BASE } from './core/adapters';
import { learnRequest, statusRequest } from './core/protocol';
import { acceptedOfJudged, learnerLine } from './core/summary';
import { say } from './say';
import type { Server } from './server';
import { toggle, toggleLanguage } from './settings';
import type { Walkthrough } from './walkthrough';
import type { WarmStart } from './warmStart';

export interface CommandParts {
    server: Server;
    provider: Provider;
    pages: Pages;
    recorder: Recorder;
    warmStart: WarmStart;
    walkthrough: Walkthrough;
    output: vscode.LogOutputChannel;
    extensionUri: vscode.Uri;
}

export function registerCommands(parts: CommandParts): vscode.Disposable[] {
    const { server, provider, pages } = parts;
    const actions: Record<string, () => Promise<void>> = {
        menu: () => openMenu(server, parts.output, parts.recorder.isOn),
        toggle,
        toggleLanguage: toggleActiveLanguage,
        trigger: async () =>
            void (await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger')),
        why: async () => {
            // If the server does not run, this says what to do about it.
            server.client();
            await why(provider.reasonHere());
        },
        eagerness: pickEagerness,
        snooze: () => pickSnooze(server),
        status: () => status(server),
        report: async () => {
            parts.walkthrough.done('report');
            await pages.report();
        },
        learn: () => learn(server),
        toggleLearning: () => toggleLearning(server),
        adapter: () => pickAdapter(server),
        forget: () => forgetFile(server),
        model: () => pickModel(server),
        tryIt: () => tryIt(server),
        learnFromHistory: async () => {
            if (await parts.warmStart.learn()) parts.walkthrough.done('history');
        },
        rehearse: () => rehearse(server),
        record: () => parts.recorder.start(),
        stopRecording: () => parts.recorder.stop(),
        doctor: () => pages.doctor(),
        log: () => log(server),
        restart: () => server.restart(),
        install: () => install(parts.extensionUri),
    };
    return Object.entries(actions).map(([name, action]) =>
        vscode.commands.registerCommand(`hone.${name}`, async () => {
            try {
                await action();
            } catch (error) {
                void say('error', `Hone: ${(error as Error).message}`);
            }
        }),
    );
}

async function toggleActiveLanguage(): Promise<void> {
    const language = vscode.window.activeTextEditor?.document.languageId;
    if (language) await toggleLanguage(language);
}

async function status(server: Server): Promise<void> {
    const known = await server.client().sendRequest(statusRequest);
    const { accepted, judged } = acceptedOfJudged(known);
    const { active } = known.adapter;
    const adapter = active === BASE ? 'no adapter yet' : `adapter v${active}`;
    const report = 'Learning report';
    const text = [
        `Hone ${known.version}: ${known.model.name}, ${adapter}.`,
        `${accepted} of ${judged} judged offers were accepted.`,
        `${learnerLine(known)}.`,
    ].join(' ');
    const picked = await say('information', text, report);
    if (picked === report) await vscode.commands.executeCommand('hone.report');
}

async function log(server: Server): Promise<void> {
    const { paths } = await server.client().sendRequest(statusRequest);
    await vscode.window.showTextDocument(vscode.Uri.file(paths.log));
}

async function learn(server: Server): Promise<void> {
    const { started, waiting } = await server.client().sendRequest(learnRequest);
    const text = started
        ? `learning from ${waiting} label${waiting === 1 ? '' : 's'}`
        : waiting === 0
          ? 'there is nothing to learn from yet: no judged offer waits'
          : 'an update is already under way';
    void say('information', `Hone: ${text}`);
}

async function rehearse(server: Server): Promise<void> {
    const program = server.program();
    const folder = await pickTrustedFolder();
    if (!folder) return;
    const terminal = vscode.window.createTerminal({
        name: `Hone: rehearsing ${basename(folder.uri.fsPath)}`,
        cwd: folder.uri,
        iconPath: new vscode.ThemeIcon('mortar-board'),
        // No shell stands between, which would read the folder's name as a part of a command.
        shellPath: program,
        shellArgs: ['rehearse', '--repo', folder.uri.fsPath, '--wait'],
    });
    terminal.show();
}

/** Shows the README of this package. It needs no network and fits the installed version. */
async function install(extensionUri: vscode.Uri): Promise<void> {
    // The packager changes the name to lower case.
    for (const name of ['readme.md', 'README.md']) {
        const uri = vscode.Uri.joinPath(extensionUri, name);
        const exists = await vscode.workspace.fs.stat(uri).then(
            () => true,
            () => false,
        );
        if (exists) {
            await vscode.commands.executeCommand('markdown.showPreview', uri);
            return;
        }
    }
    throw new Error('README.md is missing from this extension; reinstall it');
}
