// Finds programs. Node and Windows search a name in the current folder too, where a stranger's
// repository may have a program of the same name. So a name is searched in the absolute entries of
// PATH alone, and what is started is a full path.

import { accessSync, constants, statSync } from 'node:fs';
import { posix, win32 } from 'node:path';

export interface Search {
    /** Node's name of the operating system. */
    platform: string;
    /** The environment variable PATH. */
    searchPath: string;
    isExecutable(path: string): boolean;
}

/** How programs are searched on this machine. */
export function thisMachine(): Search {
    return {
        platform: process.platform,
        searchPath: process.env['PATH'] ?? '',
        isExecutable,
    };
}

/** The path of a program that stands in an absolute entry of PATH, if there is one. */
export function onPath(program: string, at: Search): string | undefined {
    const folders = at.searchPath.split(at.platform === 'win32' ? ';' : ':');
    return folders
        .map((folder) => folder.replaceAll('"', ''))
        .filter((folder) => isFullPath(folder, at.platform))
        .map((folder) => inFolder(folder, program, at.platform))
        .find((path) => at.isExecutable(path));
}

/** The path that a program has in a folder. Windows runs files with other endings by a shell. */
export function inFolder(folder: string, program: string, platform: string): string {
    return platform === 'win32'
        ? win32.join(folder, `${program}.exe`)
        : posix.join(folder, program);
}

/**
 * Whether a path means the same file in every folder. On Windows `\file` means another one on
 * another drive, and `C:file` in another folder.
 */
export function isFullPath(path: string, platform: string): boolean {
    return platform === 'win32'
        ? /^([a-z]:[\\/]|[\\/]{2}[^\\/])/i.test(path)
        : posix.isAbsolute(path);
}

function isExecutable(path: string): boolean {
    try {
        accessSync(path, constants.X_OK);
        return statSync(path).isFile();
    } catch {
        return false;
    }
}
