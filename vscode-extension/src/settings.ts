// Reads and writes the extension's settings in the editor.

import * as vscode from 'vscode';
import * as switches from './core/languages';
import type { Route } from './core/models';

const SECTION = 'hone';

function section(): vscode.WorkspaceConfiguration {
    return vscode.workspace.getConfiguration(SECTION);
}

export function programPath(): string {
    return section().get('path', '');
}

/** By which way a model is downloaded. */
export function downloadRoute(): Route {
    return {
        proxy: vscode.workspace.getConfiguration('http').get('proxy') ?? '',
        mirror: section().get('mirror', ''),
    };
}

export function isEnabled(): boolean {
    return switches.isEnabled(values('enabled'));
}

export function isLanguageOn(languageId: string): boolean {
    return switches.isLanguageOn(values('languages'), languageId);
}

export function inlineSuggestEnabled(): boolean {
    return vscode.workspace.getConfiguration('editor').get('inlineSuggest.enabled', true);
}

export async function toggle(): Promise<void> {
    await update('enabled', switches.toggled(values('enabled')));
}

export async function toggleLanguage(languageId: string): Promise<void> {
    await update('languages', switches.languageToggled(values('languages'), languageId));
}

/**
 * Whether an extension that is Vim or Neovim has the keys. It may run on the machine of the window,
 * where only its settings show that it is there.
 */
export function vimHasKeys(): boolean {
    const { workspace } = vscode;
    const isVim = workspace.getConfiguration('vim').get('disableExtension') === false;
    const neovim = workspace.getConfiguration('vscode-neovim');
    return isVim || neovim.get('neovimExecutablePaths.linux') !== undefined;
}

/** The machine's settings that the user has set. Those left at their default are not among them. */
export function setByUser(names: readonly string[]): Record<string, unknown> {
    const values = names.map((name) => {
        const found = section().inspect(name);
        // In a remote window this includes the remote machine's own value, which wins.
        return [name, found?.globalValue] as const;
    });
    return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

/** How readily the server makes offers, as the user has set it in the editor. */
export function eagerness(): string {
    return section().get('completion.eagerness', 'balanced');
}

export async function setEagerness(name: string): Promise<void> {
    // One daemon serves all windows of a machine.
    await section().update('completion.eagerness', name, vscode.ConfigurationTarget.Global);
}

export function affects(event: vscode.ConfigurationChangeEvent, name: string): boolean {
    return event.affectsConfiguration(`${SECTION}.${name}`);
}

function values<T>(name: string): switches.Values<T> {
    return section().inspect<T>(name) ?? {};
}

async function update<T>(name: string, changes: switches.Change<T>[]): Promise<void> {
    const { Global, Workspace } = vscode.ConfigurationTarget;
    for (const { place, value } of changes) {
        await section().update(name, value, place === 'workspace' ? Workspace : Global);
    }
}
