// What every program here needs before a window opens and after it has closed.

import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from './hone.mjs';

/** The extension's folder. */
export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Makes folders below the profile. Each call makes a new one, so that a story can begin again. */
export function folders(profile) {
    let made = 0;
    return (name, files) => {
        const path = join(profile, 'folders', String((made += 1)), name);
        mkdirSync(path, { recursive: true });
        for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text);
        return path;
    };
}

/** Removes a profile. The extension host outlives its server by seconds and still writes there. */
export function removed(profile) {
    return eventually('the profile is removed', () => {
        try {
            rmSync(profile, { recursive: true, force: true });
            return true;
        } catch {
            return false;
        }
    });
}

/** Makes the package that a user in this mode has. Returns its path. */
export function packaged(proposedApi) {
    const args = ['run', 'package', ...(proposedApi ? [] : ['--', '--marketplace'])];
    const made = spawnSync('npm', args, { cwd: ROOT, encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`npm run package: ${made.stderr}`);
    return /Packaged: (.+\.vsix)/.exec(made.stdout)[1];
}

export function required(variable) {
    const value = process.env[variable];
    if (!value) throw new Error(`set ${variable}; README.md says to what`);
    return value;
}
