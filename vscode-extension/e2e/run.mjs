// npm run e2e [-- granted|gated [STORY]]: real VS Code, real server, real model. See README.md.
// STORY is a regular expression that a story's name matches.
//
// Without arguments the two modes run side by side, each in a process of its own: most of the time
// a story waits for keys, pauses and answers.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { CodeServer, makeProposedApiGateable } from './codeserver.mjs';
import { Hone } from './hone.mjs';
import { latency } from './latency.mjs';
import { ROOT, folders, packaged, removed, required } from './setup.mjs';
import { FILES, everyLabelOnce, gatedStories, noCode, stories } from './stories.mjs';
import { BlankWindow, Window, openBrowser } from './window.mjs';

const SELF = fileURLToPath(import.meta.url);
const FIRST_PORT = 18_090;
/** A model is loaded, and its hash is computed the first time. */
const READY_LIMIT_MS = 120_000;
/** How often a story may begin, if a window stays blank in it. */
const STORY_STARTS = 3;
const LATENCY = 'latency';
const MODES = { granted: true, gated: false };

const [chosenMode, chosenStory] = process.argv.slice(2);
makeProposedApiGateable(required('CODE_SERVER'));
const failures = chosenMode ? await inMode(chosenMode, MODES[chosenMode]) : await inBothModes();
process.exitCode = failures === 0 ? 0 : 1;

/** Runs the modes side by side. Returns how many of them failed. */
async function inBothModes() {
    // The packages are made one after the other, because both go through the same folder.
    const packages = Object.values(MODES).map(packaged);
    const runs = Object.keys(MODES).map((mode, at) => {
        const env = { ...process.env, E2E_VSIX: packages[at], E2E_PORT: String(port() + at) };
        const stdio = ['ignore', 'pipe', 'pipe'];
        const child = spawn(process.execPath, [SELF, mode], { env, stdio });
        for (const stream of [child.stdout, child.stderr]) {
            createInterface({ input: stream }).on('line', (line) =>
                console.log(`${mode.padEnd(8)}${line}`),
            );
        }
        return new Promise((resolve) => child.once('close', (code) => resolve(code === 0 ? 0 : 1)));
    });
    const failed = await Promise.all(runs);
    return failed.reduce((sum, one) => sum + one, 0);
}

/** Runs all stories in one mode. Returns how many failed. */
async function inMode(mode, proposedApi) {
    const granted = proposedApi ? 'granted' : 'not granted, as for a Marketplace user';
    console.log(`The proposed API is ${granted}.`);
    const model = process.env.HONE_E2E_MODEL ?? 'smollm2-135m';
    const hone = new Hone(required('HONE_BIN'), required('HONE_TEST_MODELS'), model);
    const profile = mkdtempSync(join(tmpdir(), 'hone-vscode-'));
    const shots = join(ROOT, 'e2e/shots', mode);
    mkdirSync(shots, { recursive: true });
    const server = new CodeServer(
        required('CODE_SERVER'),
        profile,
        port(),
        { 'hone.path': hone.program },
        { ...hone.environment, ...(proposedApi ? {} : { HONE_E2E_GATED: '1' }) },
    );
    let browser;
    try {
        if (chosenStory === LATENCY) server.addExtension(join(ROOT, 'e2e/instant'));
        server.installExtension(process.env.E2E_VSIX ?? packaged(proposedApi));
        await server.start();
        browser = await openBrowser();
        const folder = folders(profile);
        const at = {
            hone,
            workspace: folder('workspace', FILES),
            proposedApi,
            open: (place) => Window.open(browser, port(), place, shots),
            folder,
            set: (settings) => server.set(settings),
        };
        return await inWindow(at, server, (name, story) => runStory(name, story, browser, shots));
    } finally {
        await browser?.close();
        await server.stop();
        hone.dispose();
        await removed(profile);
    }
}

/** Opens a window and runs the stories in it. Returns how many failed. */
async function inWindow(at, server, run) {
    const opens = 'a window opens, and the extension finds hone and starts it';
    const first = await run(opens, async () => {
        at.window = await at.open({ folder: at.workspace });
        await at.window.statusIs('ready', READY_LIMIT_MS);
    });
    if (first > 0) return first;
    let failed = 0;
    for (const [name, story] of Object.entries(chosenStories(at))) {
        failed += await run(name, () => story(at));
    }
    const logs = [...server.logs('Hone.log'), at.hone.log];
    failed += await run('no log holds code', async () => noCode(logs));
    failed += await run('no offer has two labels', async () => {
        console.log(`  ${everyLabelOnce(at.hone)} labels`);
    });
    return failed;
}

/**
 * The stories to run. Latency is measured only on request, because it means nothing on a busy
 * machine.
 */
function chosenStories(at) {
    if (chosenStory === LATENCY) return { [LATENCY]: () => latency(at.window, at.hone) };
    const isPlayed = !at.proposedApi || chosenStory !== undefined;
    const all = Object.entries({ ...stories, ...(isPlayed ? gatedStories : {}) });
    return Object.fromEntries(all.filter(([name]) => !chosenStory || name.match(chosenStory)));
}

/**
 * Runs one story and prints how it went. A window that stays blank costs another start of this
 * story.
 */
async function runStory(name, story, browser, shots) {
    const start = Date.now();
    for (let starts = 1; ; starts += 1) {
        try {
            await story();
            console.log(`ok      ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
            return 0;
        } catch (error) {
            if (error instanceof BlankWindow && starts < STORY_STARTS) {
                console.log(`again   ${name}: ${error.message}`);
                continue;
            }
            console.log(`FAILED  ${name}\n${error.message}`);
            const pages = browser.contexts().flatMap((context) => context.pages());
            const file = (at) =>
                join(shots, `failed-${name.replaceAll(/\W+/g, '-')}-${at + 1}.png`);
            await Promise.all(pages.map((page, at) => page.screenshot({ path: file(at) })));
            return 1;
        }
    }
}

function port() {
    return Number(process.env.E2E_PORT ?? FIRST_PORT);
}
