// One window of VS Code in a browser, driven as a person would drive it.

import { chromium, errors } from 'playwright-core';
import { join } from 'node:path';
import { eventually } from './hone.mjs';

const GHOST = '.ghost-text-decoration, .ghost-text-decoration-preview';
/** An entry of the list below the input at the top. */
const ROW = '.quick-input-list .monaco-list-row';
const BROWSER_ARGS = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
];
/** How long a window may take to show the files of its folder. */
const START_LIMIT_MS = 45_000;
/**
 * How long a window may say that it has no folder. A window that read its workspace too early says
 * so until it is loaded again.
 */
const NO_FOLDER_LIMIT_MS = 8_000;
/**
 * How often a window is loaded, if it stays blank. When it is loaded again, it has its workspace in
 * a cache.
 */
const LOADS = 3;
/** How large a window of the stories is. */
const VIEWPORT = { width: 1100, height: 940 };
const START_POLL_MS = 200;
/**
 * How long the input at the top and its list may take after a key, and how often a key is pressed.
 */
const INPUT_MS = 10_000;
const KEY_PRESSES = 4;
/** How long a tooltip may take to come. */
const TOOLTIP_MS = 5_000;
/** From when on an open menu takes a click. */
const MENU_MS = 400;

/** A window that stays without the files of its folder, however often it is loaded. */
export class BlankWindow extends Error {}

/** With a `scale` of 2, everything on screen has twice as many pixels in each direction. */
export async function openBrowser(scale = 1) {
    const args = [...BROWSER_ARGS, `--force-device-scale-factor=${scale}`];
    return chromium.launch({
        executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
        headless: true,
        args,
    });
}

export class Window {
    /**
     * Opens a `folder` or a `workspace` by its path. Nothing in it is trusted until `trust`. A
     * window that stays blank is loaded again. If that does not help either, it is closed, and a
     * `BlankWindow` is thrown. `screen` may name another viewport and its scale, as Playwright
     * does.
     */
    static async open(browser, port, place, shots, screen = {}) {
        const context = await browser.newContext({ viewport: VIEWPORT, ...screen });
        // Requests to other machines are cut off. What the editor asks of them is not tested here.
        await context.route('**/*', (route) => {
            const { hostname, protocol } = new URL(route.request().url());
            const local =
                hostname === '127.0.0.1' ||
                hostname.endsWith('localhost') ||
                protocol === 'data:' ||
                protocol === 'blob:';
            return local || hostname.endsWith('.vscode-cdn.net') ? route.continue() : route.abort();
        });
        const window = new Window(await context.newPage(), shots);
        for (let loads = 1; ; loads += 1) {
            try {
                await window.page.goto(`http://127.0.0.1:${port}/?${new URLSearchParams(place)}`);
                await window.showsFiles();
                return window;
            } catch (error) {
                await window.shot('blank').catch(() => undefined);
                if (loads < LOADS) {
                    console.log(
                        `again   a window stayed blank and is loaded once more: ${error.message}`,
                    );
                    continue;
                }
                await window.close();
                throw new BlankWindow(`a window stayed blank: ${error.message}`, { cause: error });
            }
        }
    }

    /** Waits for the files of the folder, but not for long if the window says it has no folder. */
    async showsFiles() {
        const files = this.page.locator('.explorer-folders-view .monaco-list-row');
        const noFolder = this.page.getByText('You have not yet added a folder to the workspace');
        const start = Date.now();
        let blankSince;
        while ((await files.count()) === 0) {
            const now = Date.now();
            blankSince = (await noFolder.isVisible()) ? (blankSince ?? now) : undefined;
            if (now - (blankSince ?? now) > NO_FOLDER_LIMIT_MS) throw new Error('it has no folder');
            if (now - start > START_LIMIT_MS) {
                throw new Error(`it showed no files within ${START_LIMIT_MS / 1000} s`);
            }
            await this.pause(START_POLL_MS);
        }
    }

    constructor(page, shots) {
        this.page = page;
        this.shots = shots;
    }

    close() {
        return this.page.context().close();
    }

    restricted() {
        return this.page.locator('.statusbar-item', { hasText: 'Restricted Mode' });
    }

    isRestricted() {
        return this.restricted().isVisible();
    }

    async trust() {
        const restricted = this.restricted();
        await restricted.click();
        await this.page
            .locator('.workspace-trust-editor')
            .getByRole('button', { name: 'Trust', exact: true })
            .click();
        await restricted.waitFor({ state: 'detached' });
        await this.command('View: Close Editor');
    }

    /**
     * Opens a file of the folder in whatever editor it has, by its name. The tree may have no room
     * for the file's row, and rows move while the window is busy.
     */
    async openFile(name) {
        await this.pick('Control+P', name, this.page.locator(`${ROW}[aria-label^="${name}"]`));
        await this.page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor();
    }

    /** Opens a file of text and puts the cursor at its end. */
    async file(name) {
        await this.openFile(name);
        await this.page.locator('.editor-instance .view-lines').first().click();
        await this.press('Control+End');
    }

    /** Types key by key. */
    type(text, delay = 60) {
        return this.page.keyboard.type(text, { delay });
    }

    /** Inserts a text at once, as an input method does. */
    insert(text) {
        return this.page.keyboard.insertText(text);
    }

    press(...keys) {
        return keys.reduce(
            (before, key) => before.then(() => this.page.keyboard.press(key)),
            Promise.resolve(),
        );
    }

    pause(ms) {
        return this.page.waitForTimeout(ms);
    }

    command(title) {
        return this.pick('F1', `>${title}`, this.row(title));
    }

    /** Types into the palette and leaves it open. */
    palette(title) {
        return this.untilDone('F1', (timeout) => this.quickInput().fill(`>${title}`, { timeout }));
    }

    /** Opens the input at the top of the window by a key, fills it, and clicks this row. */
    pick(key, text, row) {
        return this.untilDone(key, async (timeout) => {
            await this.quickInput().fill(text, { timeout });
            await row.first().click({ timeout });
        });
    }

    quickInput() {
        return this.page.locator('.quick-input-widget .quick-input-box input');
    }

    /**
     * Presses a key and does what comes next. A busy window may ignore the key, and its input
     * closes if an editor takes the focus just then. Whoever sees no input presses again.
     */
    async untilDone(key, act) {
        for (let presses = 1; ; presses += 1) {
            await this.press(key);
            try {
                return await act(INPUT_MS);
            } catch (error) {
                if (!(error instanceof errors.TimeoutError) || presses === KEY_PRESSES) {
                    throw error;
                }
                // A key that opens the input does something else while it is open.
                await this.press('Escape');
            }
        }
    }

    /** Waits for the list with this title, and types into it. */
    async filter(title, text) {
        await this.page.locator('.quick-input-title', { hasText: title }).waitFor();
        await this.type(text);
    }

    /** Clicks an entry of the open list. */
    choose(entry) {
        return this.row(entry).first().click();
    }

    row(entry) {
        return this.page.locator(ROW, { hasText: entry });
    }

    /** The entries of the open list. Rows of an earlier list stay in the page, but are not seen. */
    async choices() {
        const names = this.page.locator(`${ROW} .label-name`).filter({ visible: true });
        return (await names.allTextContents()).map((name) => name.trim());
    }

    /** The text of the entry that Enter would choose, or ''. */
    async focusedChoice() {
        const focused = this.page.locator(`${ROW}.focused`).filter({ visible: true });
        return ((await focused.allInnerTexts())[0] ?? '').trim();
    }

    /** The grey text on screen, or ''. */
    async ghost() {
        const parts = await this.page.locator(GHOST).allTextContents();
        return parts.join('').replaceAll('\u00a0', ' ');
    }

    /**
     * The offer on screen, as the daemon's log has it. The editor shows it at each cursor. Its
     * grey text is what is left of it, if its beginning was typed meanwhile. It counts as read.
     */
    offer(hone, cursors = 1) {
        return eventually('the newest offer is on screen', async () => {
            const all = await this.ghost();
            if (all === '') return undefined;
            // A busy window shows the grey text from before the last key for a while.
            await this.isDrawn();
            if ((await this.ghost()) !== all) return undefined;
            const last = hone.lastOffer();
            const ghost = all.slice(0, all.length / cursors);
            if (!last || ghost.repeat(cursors) !== all || !last.shown.endsWith(ghost)) {
                return undefined;
            }
            hone.offerWasRead();
            return { id: last.id, text: last.shown, ghost };
        });
    }

    async noGhost() {
        await eventually('no grey text', async () => (await this.ghost()) === '');
    }

    /** Presses Escape until there is no grey text. */
    async dismiss() {
        await eventually('no grey text', async () => {
            await this.press('Escape');
            await this.isDrawn();
            return (await this.ghost()) === '';
        });
    }

    /** Waits until the window has drawn what it knows. */
    isDrawn() {
        const frame = () =>
            new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        return this.page.evaluate(frame);
    }

    /**
     * The next edit on screen: the text that goes, its whole line, the text that comes, and the
     * hint at the cursor.
     */
    nextEdit() {
        return this.page.evaluate(() => {
            const spans = [...document.querySelectorAll('.editor-instance .view-line span')];
            const style = (span, part) => getComputedStyle(span, part);
            const isStruck = (span) => style(span).textDecorationLine === 'line-through';
            const behind = spans
                .map((span) => style(span, '::after').content)
                .filter((content) => content.startsWith('"'))
                .map((content) => JSON.parse(content).replaceAll('\u00a0', ' '));
            const isHint = (text) => text.startsWith('→');
            const struck = spans.filter(isStruck);
            const textOf = (element) => element?.textContent.replaceAll('\u00a0', ' ') ?? '';
            return {
                old: struck.map(textOf).join(''),
                line: textOf(struck[0]?.closest('.view-line')),
                new: behind.filter((text) => !isHint(text)).join(''),
                hint: behind.filter(isHint).join(''),
            };
        });
    }

    /** The steps of the walkthrough on screen that are ticked. */
    ticks() {
        const names = (ticks) => ticks.map((tick) => tick.dataset.doneStepId.split('#').at(-1));
        return this.page.locator('.codicon.complete[data-done-step-id]').evaluateAll(names);
    }

    /** Waits until these steps of the walkthrough are ticked, and no others. */
    areTicked(...steps) {
        return eventually(`only these are ticked: ${steps}`, async () => {
            return (await this.ticks()).join() === steps.join();
        });
    }

    /** Opens Hone's walkthrough. */
    async openWalkthrough() {
        await this.command('Welcome: Open Walkthrough...');
        await this.choose('Hone: the First Minute');
        await this.page.locator('.getting-started-step').first().waitFor();
    }

    /** The page of Hone that contains a text. */
    async webview(text) {
        return eventually(`a page with “${text}”`, async () => {
            for (const frame of this.page.frames()) {
                const found = await frame
                    .evaluate((wanted) => document.body?.innerText.includes(wanted), text)
                    .catch(() => false);
                if (found && frame !== this.page.mainFrame()) return frame;
            }
            return undefined;
        });
    }

    /** Hides an item of the status bar by its menu, as a person would. */
    async hideStatus(id) {
        const item = this.page.locator(`.statusbar-item[id="${id}"]`);
        await item.click({ button: 'right' });
        // A menu ignores a click that comes right after it has opened.
        await this.pause(MENU_MS);
        await this.page.locator('.monaco-menu .action-item', { hasText: /^Hide '/ }).click();
        await item.waitFor({ state: 'hidden' });
    }

    /** Waits until Hone's item in the status bar shows this state. */
    async statusIs(state, limitMs) {
        const label = () =>
            document.querySelector('.statusbar-item[id^="hone"]')?.getAttribute('aria-label');
        const isShown = async () => (await this.page.evaluate(label)) === `Hone: ${state}`;
        await eventually(`the status bar says ${state}`, isShown, limitMs);
    }

    /** Opens the menu of Hone's item in the status bar. */
    async clickStatus() {
        await this.page.locator('.statusbar-item[id^="hone"]').click();
        await this.page.locator(ROW).first().waitFor();
    }

    /**
     * What the item says when the pointer comes to rest on it, or ''. An item that changes at that
     * moment closes its tooltip, which comes back only if the pointer leaves and returns.
     */
    async statusTooltip() {
        await this.page.mouse.move(0, 0);
        await this.page.locator('.statusbar-item[id^="hone"]').hover();
        const tooltip = this.page.locator('.monaco-hover', { hasText: 'Hone' }).first();
        try {
            await tooltip.waitFor({ timeout: TOOLTIP_MS });
            return await tooltip.innerText({ timeout: TOOLTIP_MS });
        } catch (error) {
            if (error instanceof errors.TimeoutError) return '';
            throw error;
        }
    }

    notification(text) {
        return this.page.locator('.notification-list-item', { hasText: text });
    }

    /** The notifications of errors. */
    errors() {
        return this.page.locator('.notification-list-item .codicon-error');
    }

    shot(name) {
        return this.page.screenshot({ path: join(this.shots, `${name}.png`) });
    }
}
