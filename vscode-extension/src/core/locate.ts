// Finds the program `hone`: from the setting, else in the extension, else on PATH, else where
// programs of a user's own are. An editor that was started from a menu may have a shorter PATH than
// the user's shell.

import { posix, win32 } from 'node:path';
import { inFolder, isFullPath, onPath, type Search } from './search';

export interface SearchPlaces extends Search {
    /** The setting `hone.path`. */
    configured: string;
    extensionFolder: string;
    homeFolder: string;
    arch: string;
}

export type Located =
    | { path: string; source: 'hone.path' | 'bundled' | 'PATH' | 'home folder' }
    | { path?: never; problem: string };

/** The problem where there is no program at all. */
export const NOT_FOUND = 'The program `hone` was not found; install it, or set hone.path';

const PROGRAM = 'hone';

/** Where programs of a user's own are, below the home folder. */
const OF_USER = ['.cargo/bin', '.local/bin'];

export function locate(at: SearchPlaces): Located {
    const { join } = at.platform === 'win32' ? win32 : posix;
    const configured = at.configured.trim().replace(/^~(?=[\\/])/, () => at.homeFolder);
    // The user named this program, so no other one is tried.
    if (configured) return named(configured, at);
    const bundled = join(at.extensionFolder, 'bin', `${at.platform}-${at.arch}`);
    const program = inFolder(bundled, PROGRAM, at.platform);
    if (at.isExecutable(program)) return { path: program, source: 'bundled' };
    const found = onPath(PROGRAM, at);
    if (found !== undefined) return { path: found, source: 'PATH' };
    const own = OF_USER.map((folder) => join(at.homeFolder, folder))
        .map((folder) => inFolder(folder, PROGRAM, at.platform))
        .find((path) => at.isExecutable(path));
    if (own !== undefined) return { path: own, source: 'home folder' };
    return { problem: NOT_FOUND };
}

function named(path: string, at: SearchPlaces): Located {
    if (!isFullPath(path, at.platform)) {
        return { problem: `${path} is no full path; correct the setting hone.path` };
    }
    return at.isExecutable(path)
        ? { path, source: 'hone.path' }
        : { problem: `${path} cannot be run; correct the setting hone.path` };
}
