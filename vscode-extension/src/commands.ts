// The commands of the palette and of the menu in the status bar.

import { basename } from 'node:path';
import * as vscode from 'vscode';
import { forgetFile, pickAdapter, toggleLearning } from './learning';
import { pickModel } from './modelpicker';
import type { Pages } from './pages';
import { learnRequest, statusRequest } from './core/protocol';
import { learnerLine, acceptedOfJudged } from './core/report';
import type { Server } from './server';
import { isEnabled, isLanguageOn, toggle, toggleLanguage } from './settings';
import { quoted } from './core/shell';

export interface CommandParts {
    server: Server;
    pages: Pages;
    output: vscode.LogOutputChannel;
    extensionUri: vscode.Uri;
}

export function registerCommands(parts: CommandParts): vscode.Disposable[] {
    const { server, pages } = parts;
    const actions: Record<string, () => Promise<void>> = {
        menu: () => menu(parts),
        toggle,
        toggleLanguage: toggleActiveLanguage,
        trigger: async () =>
            void (await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger')),
        status: () => status(server),
        report: () => pages.report(),
        learn: () => learn(server),
        toggleLearning: () => toggleLearning(server),
        adapter: () => pickAdapter(server),
        forget: () => forgetFile(server),
        model: () => pickModel(server),
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

async function menu({ server, output }: CommandParts): Promise<void> {
    const language = vscode.window.activeTextEditor?.document.languageId;
    const running = server.connected !== undefined;
    const entries: (vscode.QuickPickItem & { command?: string })[] = [
        {
            label: isEnabled() ? '$(circle-slash) Turn off' : '$(sparkle) Turn on',
            command: 'hone.toggle',
        },
        ...(language && isEnabled()
            ? [
                  {
                      label: `${isLanguageOn(language) ? '$(circle-slash) Turn off' : '$(sparkle) Turn on'} for ${language}`,
                      command: 'hone.toggleLanguage',
                  },
              ]
            : []),
        { label: '', kind: vscode.QuickPickItemKind.Separator },
        ...(running ? [{ label: '$(info) Status', command: 'hone.status' }] : []),
        { label: '$(graph-line) Learning report', command: 'hone.report' },
        ...(running
            ? [
                  { label: '$(mortar-board) Learn now', command: 'hone.learn' },
                  {
                      label: '$(debug-pause) Pause or resume learning',
                      command: 'hone.toggleLearning',
                  },
              ]
            : []),
        { label: '$(history) Roll back the adapter', command: 'hone.adapter' },
        ...(running && language
            ? [{ label: '$(trash) Forget this file', command: 'hone.forget' }]
            : []),
        { label: '$(package) Pick a model', command: 'hone.model' },
        ...(vscode.workspace.isTrusted && vscode.workspace.workspaceFolders
            ? [{ label: '$(terminal) Rehearse on this workspace', command: 'hone.rehearse' }]
            : []),
        { label: '', kind: vscode.QuickPickItemKind.Separator },
        { label: '$(pulse) Doctor', command: 'hone.doctor' },
        { label: '$(output) Show output' },
        ...(running ? [{ label: '$(list-flat) Show the daemon’s log', command: 'hone.log' }] : []),
        { label: '$(debug-restart) Restart server', command: 'hone.restart' },
    ];
    const title = server.state.kind === 'failed' ? server.state.problem : 'Hone';
    const picked = await vscode.window.showQuickPick(entries, { title });
    if (picked?.command) await vscode.commands.executeCommand(picked.command);
    else if (picked) output.show();
}

async function toggleActiveLanguage(): Promise<void> {
    const language = vscode.window.activeTextEditor?.document.languageId;
    if (language) await toggleLanguage(language);
}

function connected(server: Server) {
    if (!server.connected) throw new Error('the server is not running; `Hone: Doctor` says why');
    return server.connected;
}

async function status(server: Server): Promise<void> {
    const known = await connected(server).sendRequest(statusRequest);
    const { accepted, judged } = acceptedOfJudged(known);
    const adapter =
        known.adapter.active === 0 ? 'no adapter yet' : `adapter v${known.adapter.active}`;
    const report = 'Learning report';
    const text = `Hone ${known.version}: ${known.model.name}, ${adapter}. ${accepted} of ${judged} judged offers were accepted. ${learnerLine(known)}.`;
    const picked = await vscode.window.showInformationMessage(text, report);
    if (picked === report) await vscode.commands.executeCommand('hone.report');
}

async function log(server: Server): Promise<void> {
    const { paths } = await connected(server).sendRequest(statusRequest);
    await vscode.window.showTextDocument(vscode.Uri.file(paths.log));
}

async function learn(server: Server): Promise<void> {
    const { started, waiting } = await connected(server).sendRequest(learnRequest);
    const text = started
        ? `learning from ${waiting} label${waiting === 1 ? '' : 's'}`
        : waiting === 0
          ? 'there is nothing to learn from yet: no judged offer waits'
          : 'an update is already under way';
    void vscode.window.showInformationMessage(`Hone: ${text}`);
}

async function rehearse(server: Server): Promise<void> {
    const program = server.program();
    const folders = vscode.workspace.workspaceFolders ?? [];
    const folder = folders.length > 1 ? await vscode.window.showWorkspaceFolderPick() : folders[0];
    if (!folder) return;
    const terminal = vscode.window.createTerminal({
        name: `Hone: rehearsing ${basename(folder.uri.fsPath)}`,
        cwd: folder.uri,
        iconPath: new vscode.ThemeIcon('mortar-board'),
    });
    terminal.show();
    terminal.sendText([program, 'rehearse', '--repo', folder.uri.fsPath].map(quoted).join(' '));
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
