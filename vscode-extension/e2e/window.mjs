// One window of VS Code in a browser, driven as a person would.

import { chromium } from 'playwright-core';
import { join } from 'node:path';
import { eventually } from './hone.mjs';

const GHOST = '.ghost-text-decoration, .ghost-text-decoration-preview';
const BROWSER_ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
// How long a workbench may take to come up, and how often the page is loaded for it: code-server
// was seen to stay blank, once, where another window was open, and a person reloads it then.
const START_LIMIT_MS = 45_000;
const START_LOADS = 3;
// How long a palette may take to open, and how often it is asked for.
const PALETTE_MS = 5_000;
const PALETTE_PRESSES = 4;

export async function openBrowser() {
    return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, args: BROWSER_ARGS });
}

export class Window {
    /** `place`: a `folder` or a `workspace`, by its path. Nothing is trusted in it until `trust`. */
    static async open(browser, port, place, shots) {
        const context = await browser.newContext({ viewport: { width: 1100, height: 640 } });
        // Whatever is not on this machine is cut off; what the editor asks of others is not tested here.
        await context.route('**/*', (route) => {
            const { hostname, protocol } = new URL(route.request().url());
            const local = hostname === '127.0.0.1' || hostname.endsWith('localhost') || protocol === 'data:' || protocol === 'blob:';
            return local || hostname.endsWith('.vscode-cdn.net') ? route.continue() : route.abort();
        });
        const page = await context.newPage();
        const window = new Window(page, shots);
        const files = page.locator('.explorer-folders-view .monaco-list-row').first();
        for (let load = 1; ; load += 1) {
            await page.goto(`http://127.0.0.1:${port}/?${new URLSearchParams(place)}`);
            const fault = await files.waitFor({ timeout: START_LIMIT_MS }).then(() => undefined, (error) => error);
            if (!fault) {
                return window;
            }
            await window.shot(`no-workbench-${load}`);
            console.log(`        a window stayed without its files for ${START_LIMIT_MS / 1000} s (load ${load})`);
            if (load === START_LOADS) {
                throw fault;
            }
        }
    }

    constructor(page, shots) {
        this.page = page;
        this.shots = shots;
    }

    close() {
        return this.page.context().close();
    }

    async trust() {
        const restricted = this.page.locator('.statusbar-item', { hasText: 'Restricted Mode' });
        await restricted.click();
        await this.page.locator('.workspace-trust-editor').getByRole('button', { name: 'Trust', exact: true }).click();
        await restricted.waitFor({ state: 'detached' });
        await this.command('View: Close Editor');
    }

    async file(name) {
        await this.page.locator(`.explorer-folders-view .monaco-list-row[aria-label^="${name}"]`).dblclick();
        await this.page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor();
        await this.page.locator('.editor-instance .view-lines').first().click();
        await this.press('Control+End');
    }

    type(text, delay = 60) {
        return this.page.keyboard.type(text, { delay });
    }

    press(...keys) {
        return keys.reduce((before, key) => before.then(() => this.page.keyboard.press(key)), Promise.resolve());
    }

    pause(ms) {
        return this.page.waitForTimeout(ms);
    }

    async command(title) {
        await this.palette(title);
        await this.choose(title);
    }

    /** Types into the palette and leaves it open. */
    async palette(title) {
        const input = this.page.locator('.quick-input-widget .quick-input-box input');
        const opens = () => input.waitFor({ timeout: PALETTE_MS }).then(() => true, () => false);
        // A window that is still at work lets a key go by; who sees no palette presses again.
        for (let presses = 0; presses < PALETTE_PRESSES; presses += 1) {
            await this.press('F1');
            if (await opens()) {
                break;
            }
        }
        await input.fill(`>${title}`);
    }

    /** Clicks an entry of the list that is open. */
    choose(entry) {
        return this.page.locator('.quick-input-list .monaco-list-row', { hasText: entry }).first().click();
    }

    /** The entries of the list that is open. */
    choices() {
        return this.page.locator('.quick-input-list .monaco-list-row .label-name').allTextContents();
    }

    /** The grey text on screen, or ''. */
    async ghost() {
        const parts = await this.page.locator(GHOST).allTextContents();
        return parts.join('').replaceAll('\u00a0', ' ');
    }

    /** The offer that is on screen, by the daemon's log; left there long enough to be read. */
    async offer(hone) {
        const offer = await eventually('the newest offer is on screen', async () => {
            const ghost = await this.ghost();
            const last = ghost && hone.lastOffer();
            return last && last.shown.endsWith(ghost) ? { id: last.id, text: last.shown, ghost } : undefined;
        });
        await this.pause(400);
        return offer;
    }

    async noGhost() {
        await eventually('no grey text', async () => (await this.ghost()) === '');
    }

    /** Escape until nothing comes any more: an answer may be under way when the key is pressed. */
    async dismiss() {
        await eventually('no grey text comes any more', async () => {
            await this.press('Escape');
            await this.pause(250);
            return (await this.ghost()) === '';
        });
    }

    /** A page of ours, by a text in it. */
    async webview(text) {
        return eventually(`a page with “${text}”`, async () => {
            for (const frame of this.page.frames()) {
                const found = await frame.evaluate((wanted) => document.body?.innerText.includes(wanted), text).catch(() => false);
                if (found && frame !== this.page.mainFrame()) return frame;
            }
            return undefined;
        });
    }

    statusBar() {
        return this.page.evaluate(() => document.querySelector('.statusbar-item[id^="hone"]')?.getAttribute('aria-label'));
    }

    shot(name) {
        return this.page.screenshot({ path: join(this.shots, `${name}.png`) });
    }
}
