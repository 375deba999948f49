// Finds the program `hone`: from the setting, else in the extension, else on PATH, else where
// programs of a user's own are. An editor that was started from a menu may have a shorter PATH than
// the user's shell.

import { isAbsolute, join } from 'node:path';

export interface SearchPlaces {
    /** The setting `hone.path`. */
    configured: string;
    extensionFolder: string;
    homeFolder: string;
    platform: string;
    arch: string;
    /** The environment variable PATH. */
    searchPath: string;
    isExecutable(path: string): boolean;
}

export type Located =
    | { path: string; source: 'hone.path' | 'bundled' | 'PATH' | 'home folder' }
    | { path?: never; problem: string };

/** Where programs of a user's own are, below the home folder. */
const OF_USER = ['.cargo/bin', '.local/bin'];

export function locate(at: SearchPlaces): Located {
    const windows = at.platform === 'win32';
    const program = windows ? 'hone.exe' : 'hone';
    const configured = at.configured.trim().replace(/^~(?=\/)/, at.homeFolder);
    if (configured) {
        // The user named this program, so no other one is tried.
        return at.isExecutable(configured)
            ? { path: configured, source: 'hone.path' }
            : { problem: `${configured} cannot be run; correct the setting hone.path` };
    }
    const bundled = join(at.extensionFolder, 'bin', `${at.platform}-${at.arch}`, program);
    if (at.isExecutable(bundled)) return { path: bundled, source: 'bundled' };
    for (const folder of at.searchPath.split(windows ? ';' : ':')) {
        // A relative entry would run a program from the workspace.
        if (!isAbsolute(folder)) continue;
        const found = join(folder, program);
        if (at.isExecutable(found)) return { path: found, source: 'PATH' };
    }
    for (const folder of OF_USER) {
        const found = join(at.homeFolder, folder, program);
        if (at.isExecutable(found)) return { path: found, source: 'home folder' };
    }
    return { problem: 'The program `hone` was not found; install it, or set hone.path' };
}
