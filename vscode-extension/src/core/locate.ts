// Finds the program `hone`: from the setting, else in the extension, else on PATH.

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
    { path: string; source: 'hone.path' | 'bundled' | 'PATH' } | { path?: never; problem: string };

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
    return { problem: 'The program `hone` was not found; install it, or set hone.path' };
}
