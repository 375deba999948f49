// A list to pick from, in which the entry that holds now is chosen already.

import * as vscode from 'vscode';

/**
 * Returns the entry that the user picks. The list opens before its entries are known, so that it
 * takes the keys that come meanwhile.
 */
export async function pick<Entry extends vscode.QuickPickItem>(
    title: string,
    entries: readonly Entry[] | Promise<readonly Entry[]>,
    holdsNow: (entry: Entry) => boolean,
): Promise<Entry | undefined> {
    const list = vscode.window.createQuickPick<Entry>();
    list.title = title;
    list.busy = true;
    list.show();
    try {
        const picked = new Promise<Entry | undefined>((resolve) => {
            list.onDidAccept(() => resolve(list.selectedItems[0]));
            list.onDidHide(() => resolve(undefined));
        });
        list.items = await entries;
        list.activeItems = list.items.filter(holdsNow);
        list.busy = false;
        return await picked;
    } finally {
        list.dispose();
    }
}
