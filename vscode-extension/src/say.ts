/** Notifications. Nothing else shows one, because VS Code makes links of what stands in them. */

import * as vscode from 'vscode';
import { withoutLinks } from './core/plain';

type Kind = 'information' | 'warning' | 'error';

/** Shows a text. Returns which of the choices was picked, if one was. */
export async function say(
    kind: Kind,
    text: string,
    ...choices: readonly string[]
): Promise<string | undefined> {
    return show(kind, text, {}, choices);
}

/** Asks before something is done, in front of everything else. */
export async function confirm(
    kind: Kind,
    text: string,
    detail: string,
    ...choices: readonly string[]
): Promise<string | undefined> {
    return show(kind, text, { modal: true, detail: withoutLinks(detail) }, choices);
}

async function show(
    kind: Kind,
    text: string,
    options: vscode.MessageOptions,
    choices: readonly string[],
): Promise<string | undefined> {
    const plain = withoutLinks(text);
    switch (kind) {
        case 'information':
            return vscode.window.showInformationMessage(plain, options, ...choices);
        case 'warning':
            return vscode.window.showWarningMessage(plain, options, ...choices);
        case 'error':
            return vscode.window.showErrorMessage(plain, options, ...choices);
    }
}
