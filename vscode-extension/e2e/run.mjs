// npm run e2e [-- granted|gated [STORY]]: real VS Code, real server, real model. See README.md.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CodeServer, gateProposedApi } from './codeserver.mjs';
import { Hone, eventually } from './hone.mjs';
import { latency } from './latency.mjs';
import { FILES, everyLabelOnce, lastStories, noCode, stories } from './stories.mjs';
import { Window, openBrowser } from './window.mjs';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const PORT = Number(process.env.E2E_PORT ?? 18_090);
/** Loading a model, hashed for the first time. */
const READY_LIMIT_MS = 120_000;
const LATENCY = 'latency';
const MODES = { granted: true, gated: false };

const [chosenMode, chosenStory] = process.argv.slice(2);
const modes = chosenMode ? [chosenMode] : Object.keys(MODES);
let failures = 0;
for (const mode of modes) failures += await inMode(mode, MODES[mode]);
process.exitCode = failures === 0 ? 0 : 1;

async function inMode(mode, proposedApi) {
    console.log(`${mode}: the proposed API is ${proposedApi ? 'granted' : 'gated, as for a Marketplace user'}`);
    const install = required('CODE_SERVER');
    const hone = new Hone(required('HONE_BIN'), required('HONE_TEST_MODELS'), process.env.HONE_E2E_MODEL ?? 'smollm2-135m');
    const profile = mkdtempSync(join(tmpdir(), 'hone-vscode-'));
    const folder = (name, files) => {
        const path = join(profile, name);
        mkdirSync(path);
        for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text);
        return path;
    };
    const workspace = folder('workspace', FILES);
    const shots = join(ROOT, 'e2e/shots', mode);
    mkdirSync(shots, { recursive: true });
    const server = new CodeServer(install, profile, PORT, { 'hone.path': hone.program }, hone.environment);
    let browser;
    let failed = 0;
    try {
        gateProposedApi(install, !proposedApi);
        if (chosenStory === LATENCY) server.addExtension(join(ROOT, 'e2e/instant'));
        server.installExtension(packaged(proposedApi));
        await server.start();
        browser = await openBrowser();
        const told = (name, story) => tell(name, story, browser, shots);
        const open = (place) => Window.open(browser, PORT, place, shots);
        const window = await open({ folder: workspace });
        const ready = () => eventually('Hone is ready', async () => (await window.statusBar()) === 'Hone: ready', READY_LIMIT_MS);
        if ((failed = await told('the extension finds hone and starts it', ready))) return failed;
        const at = { window, hone, workspace, proposedApi, open, folder, set: (settings) => server.set(settings) };
        // Figures are worth nothing on a busy machine, so they are made only when asked for.
        const all = chosenStory === LATENCY ? { [LATENCY]: () => latency(window, hone) } : { ...stories, ...lastStories };
        for (const [name, story] of Object.entries(all)) {
            if (chosenStory && !name.includes(chosenStory)) continue;
            failed += await told(name, () => story(at));
        }
        failed += await told('no log holds code', async () => noCode([...server.logs('Hone.log'), hone.log]));
        failed += await told('no offer has two labels', async () => console.log(`  ${everyLabelOnce(hone)} labels`));
    } finally {
        await browser?.close();
        await server.stop();
        gateProposedApi(install, false);
        hone.dispose();
        // The extension host outlives its server by seconds, and writes.
        await eventually('the profile is removed', () => {
            try { return rmSync(profile, { recursive: true, force: true }) ?? true; } catch { return false; }
        });
    }
    return failed;
}

async function tell(name, story, browser, shots) {
    const start = Date.now();
    try {
        await story();
        console.log(`ok      ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
        return 0;
    } catch (error) {
        console.log(`FAILED  ${name}\n${error.message}`);
        const pages = browser.contexts().flatMap((context) => context.pages());
        const file = (at) => join(shots, `failed-${name.replaceAll(/\W+/g, '-')}-${at + 1}.png`);
        await Promise.all(pages.map((page, at) => page.screenshot({ path: file(at) })));
        return 1;
    }
}

/** The package that a user of this kind has. */
function packaged(proposedApi) {
    const made = spawnSync('npm', ['run', 'package', ...(proposedApi ? [] : ['--', '--marketplace'])], { cwd: ROOT, encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`npm run package: ${made.stderr}`);
    return /Packaged: (.+\.vsix)/.exec(made.stdout)[1];
}

function required(variable) {
    const value = process.env[variable];
    if (!value) throw new Error(`set ${variable}; README.md says what to`);
    return value;
}
