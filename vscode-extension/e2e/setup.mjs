// What every program here needs before a window opens.

import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

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

/** Makes the package that a user in this mode has. Returns its path. */
export function packaged(proposedApi) {
    const made = spawnSync(
        'npm',
        ['run', 'package', ...(proposedApi ? [] : ['--', '--marketplace'])],
        { cwd: ROOT, encoding: 'utf8' },
    );
    if (made.status !== 0) throw new Error(`npm run package: ${made.stderr}`);
    return /Packaged: (.+\.vsix)/.exec(made.stdout)[1];
}

export function required(variable) {
    const value = process.env[variable];
    if (!value) throw new Error(`set ${variable}; README.md says to what`);
    return value;
}
