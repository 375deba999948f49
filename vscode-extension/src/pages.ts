// The pages that have a tab of their own: the learning report and the doctor.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { checks, doctorPage, type DoctorReport, type Findings } from './core/doctor';
import { escape, page } from './core/html';
import { ANSWER_LIMIT_MS, ask, run } from './core/program';
import type { Provider } from './provider';
import { reportPage } from './core/report';
import type { Server } from './server';
import { inlineSuggestEnabled, isEnabled } from './settings';

export class Pages implements vscode.Disposable {
    private readonly open = new Map<string, vscode.WebviewPanel>();
    private readonly listeners: vscode.Disposable[];

    constructor(
        private readonly server: Server,
        private readonly provider: Provider,
    ) {
        const refresh = (): void => {
            if (this.open.get('report')?.visible) void this.report();
        };
        // The status line changes at the end of an update, among other times.
        this.listeners = [
            server.onLine(refresh),
            vscode.window.onDidChangeActiveColorTheme(refresh),
        ];
    }

    async report(): Promise<void> {
        const title = 'Hone: Learning Report';
        await this.show('report', title, () =>
            // Where nothing is recorded yet, there is no page, which is no error.
            readReport(this.server.program()).catch((error: Error) =>
                page(title, `<p>${escape(error.message)}</p>`),
            ),
        );
    }

    async doctor(): Promise<void> {
        await this.show('doctor', 'Hone: Doctor', async () =>
            doctorPage(checks(await this.examine())),
        );
    }

    dispose(): void {
        for (const listener of this.listeners) listener.dispose();
        for (const panel of this.open.values()) panel.dispose();
    }

    private async show(kind: string, title: string, html: () => Promise<string>): Promise<void> {
        let panel = this.open.get(kind);
        if (!panel) {
            const options = { enableScripts: false, localResourceRoots: [] };
            panel = vscode.window.createWebviewPanel(
                `hone.${kind}`,
                title,
                vscode.ViewColumn.Active,
                options,
            );
            panel.onDidDispose(() => this.open.delete(kind));
            this.open.set(kind, panel);
        } else if (!panel.visible) {
            panel.reveal();
        }
        try {
            panel.webview.html = await html();
        } catch (error) {
            panel.webview.html = page(
                title,
                `<p class="bad">${escape((error as Error).message)}</p>`,
            );
        }
    }

    private async examine(): Promise<Findings> {
        const { server, provider } = this;
        const located = server.locate();
        const window = {
            located,
            server: server.state,
            inlineSuggest: inlineSuggestEnabled(),
            enabled: isEnabled(),
            proposedApi: provider.proposedApi,
        };
        const { path } = located;
        if (path === undefined) return { ...window, version: undefined, machine: undefined };
        const [version, machine] = await Promise.all([
            ask(path, ['--version']).catch(() => undefined),
            askDoctor(path).catch((error: Error) => ({ problem: error.message })),
        ]);
        return { ...window, version, machine };
    }
}

/** `hone doctor` fails if something is wrong, after it has said what. */
async function askDoctor(path: string): Promise<DoctorReport> {
    const printed: string[] = [];
    const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
    const ended = run(path, ['doctor', '--json'], (line) => void printed.push(line), { signal });
    await ended.catch((error: Error) => {
        if (!signal.aborted && printed.length > 0) return;
        const seconds = ANSWER_LIMIT_MS / 1000;
        const silent = `\`hone doctor\` does not end within ${seconds} s; run it in a terminal`;
        throw signal.aborted ? new Error(silent) : error;
    });
    return JSON.parse(printed.join('\n')) as DoctorReport;
}

/** The page that `hone` writes for a browser, as it looks in this editor. */
async function readReport(path: string): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'hone-report-'));
    try {
        const file = join(folder, 'report.html');
        await ask(path, ['report', '--html', file]);
        return reportPage(await readFile(file, 'utf8'), isDark());
    } finally {
        await rm(folder, { recursive: true, force: true });
    }
}

function isDark(): boolean {
    const { Dark, HighContrast } = vscode.ColorThemeKind;
    return [Dark, HighContrast].includes(vscode.window.activeColorTheme.kind);
}
