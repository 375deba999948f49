// Where the program `hone` is: the setting, else the bundled one, else PATH.

import { isAbsolute, join } from 'node:path';

export interface SearchPlaces {
    /** The setting `hone.path`. */
    configured: string;
    extensionFolder: string;
    homeFolder: string;
    platform: string;
    arch: string;
    /** The variable PATH. */
    searchPath: string;
    isExecutable(path: string): boolean;
}

export type Located =
    | { path: string; source: 'hone.path' | 'bundled' | 'PATH' }
    | { path?: never; problem: string };

export function locate(at: SearchPlaces): Located {
    const windows = at.platform === 'win32';
    const program = windows ? 'hone.exe' : 'hone';
    const configured = at.configured.trim().replace(/^~(?=\/)/, at.homeFolder);
    if (configured) {
        // No falling back: the user said which program is meant.
        return at.isExecutable(configured)
            ? { path: configured, source: 'hone.path' }
            : { problem: `${configured}: cannot be run; correct the setting hone.path` };
    }
    const bundled = join(at.extensionFolder, 'bin', `${at.platform}-${at.arch}`, program);
    if (at.isExecutable(bundled)) return { path: bundled, source: 'bundled' };
    for (const folder of at.searchPath.split(windows ? ';' : ':')) {
        // A relative entry would run a program out of the workspace.
        if (!isAbsolute(folder)) continue;
        const found = join(folder, program);
        if (at.isExecutable(found)) return { path: found, source: 'PATH' };
    }
    return { problem: 'The program `hone` was not found: install it, or set hone.path' };
}
