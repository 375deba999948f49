// The commands of the palette and of the menu in the status bar.

import { basename } from 'node:path';
import * as vscode from 'vscode';
import { tryIt } from './firstrun';
import { pickTrustedFolder } from './folder';
import { forgetFile, pickAdapter, toggleLearning } from './learning';
import { pickModel } from './modelpicker';
import { pickEagerness, pickSnooze, why } from './manners';
import type { Pages } from './pages';
import type { Provider } from './provider';
import { BASE } from './core/adapters';
import { NEED_TEXT, needOf, type Need } from './core/need';
import { learnRequest, statusRequest } from './core/protocol';
import { learnerLine, acceptedOfJudged } from './core/report';
import type { Server } from './server';
import { eagerness, isEnabled, isLanguageOn, toggle, toggleLanguage } from './settings';
import type { Walkthrough } from './walkthrough';
import type { WarmStart } from './warmStart';

export interface CommandParts {
    server: Server;
    provider: Provider;
    pages: Pages;
    warmStart: WarmStart;
    walkthrough: Walkthrough;
    output: vscode.LogOutputChannel;
    extensionUri: vscode.Uri;
}

export function registerCommands(parts: CommandParts): vscode.Disposable[] {
    const { server, provider, pages } = parts;
    const actions: Record<string, () => Promise<void>> = {
        menu: () => menu(parts),
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
                void vscode.window.showErrorMessage(`Hone: ${(error as Error).message}`);
            }
        }),
    );
}

interface MenuEntry extends vscode.QuickPickItem {
    /** The command that it runs. An entry without one shows the output channel. */
    command?: string;
}

async function menu({ server, output }: CommandParts): Promise<void> {
    const problem = server.state.kind === 'failed' ? server.state.problem : undefined;
    const need = problem === undefined ? undefined : needOf(problem);
    const title = need ? `Hone: ${NEED_TEXT[need]}` : (problem ?? 'Hone');
    const entries = need ? firstEntries(need) : menuEntries(server);
    const picked = await vscode.window.showQuickPick(entries, { title });
    // A click has put the focus onto the status bar, where a blank would open the menu again.
    await vscode.commands.executeCommand('workbench.action.focusActiveEditorGroup');
    if (picked?.command) await vscode.commands.executeCommand(picked.command);
    else if (picked) output.show();
}

/** What leads to a server that runs, where something is not there yet. */
function firstEntries(need: Need): MenuEntry[] {
    const get: Record<Need, MenuEntry> = {
        program: { label: '$(book) How to install the server', command: 'hone.install' },
        model: { label: '$(cloud-download) Get a model', command: 'hone.model' },
    };
    return [
        get[need],
        { label: '$(pulse) Doctor', command: 'hone.doctor' },
        { label: '$(debug-restart) Restart server', command: 'hone.restart' },
        { label: '$(output) Show output' },
    ];
}

/** The commands that have an effect now. */
function menuEntries(server: Server): MenuEntry[] {
    const language = vscode.window.activeTextEditor?.document.languageId;
    const running = server.connected !== undefined;
    const canComplete = running && language !== undefined;
    const { isTrusted, workspaceFolders } = vscode.workspace;
    const separator = { label: '', kind: vscode.QuickPickItemKind.Separator };
    const entry = (label: string, command: string, isUseful = true): MenuEntry[] =>
        isUseful ? [{ label, command: `hone.${command}` }] : [];
    return [
        ...entry(turn(isEnabled()), 'toggle'),
        ...(language && isEnabled()
            ? entry(`${turn(isLanguageOn(language))} for ${language}`, 'toggleLanguage')
            : []),
        ...entry('$(zap) Complete here now', 'trigger', canComplete),
        ...entry('$(arrow-right) Next edit', 'nextEdit', canComplete),
        ...entry('$(clock) Snooze', 'snooze', running),
        ...entry(`$(dashboard) Eagerness: ${eagerness()}`, 'eagerness', running),
        ...entry('$(question) Why is nothing shown?', 'why', running),
        separator,
        ...entry('$(info) Status', 'status', running),
        ...entry('$(graph-line) Learning report', 'report'),
        ...entry('$(mortar-board) Learn now', 'learn', running),
        ...entry('$(debug-pause) Pause or resume learning', 'toggleLearning', running),
        ...entry('$(history) Roll back the adapter', 'adapter'),
        ...entry('$(trash) Forget this file', 'forget', running && language !== undefined),
        ...entry('$(package) Pick a model', 'model'),
        ...entry('$(beaker) Try it in a new file', 'tryIt', running),
        ...entry(
            '$(book) Learn from this workspace’s history',
            'learnFromHistory',
            isTrusted && workspaceFolders !== undefined,
        ),
        ...entry(
            '$(terminal) Rehearse on this workspace',
            'rehearse',
            isTrusted && workspaceFolders !== undefined,
        ),
        separator,
        ...entry('$(pulse) Doctor', 'doctor'),
        { label: '$(output) Show output' },
        ...entry('$(list-flat) Show the daemon’s log', 'log', running),
        ...entry('$(debug-restart) Restart server', 'restart'),
    ];
}

/** Offers to turn off what is on, and to turn on what is off. */
function turn(isOn: boolean): string {
    return isOn ? '$(circle-slash) Turn off' : '$(sparkle) Turn on';
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
    const picked = await vscode.window.showInformationMessage(text, report);
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
    void vscode.window.showInformationMessage(`Hone: ${text}`);
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
