// From a keystroke to grey text in the page, beside what the server took of it.

import assert from 'node:assert/strict';
import { loadavg } from 'node:os';

/** Keystrokes with an offer that the figures are from, and how many are tried for them. */
const KEYSTROKES = 24;
const TRIES = 2 * KEYSTROKES;
const ANSWER_LIMIT_MS = 4_000;

/** VS Code waits that long after a key before it asks (`InlineCompletionsDebounce`, minimum and maximum). */
const DEBOUNCE_MS = 50;
/** What the path from key to server and back to the screen may add, at the median. */
const PATH_LIMIT_MS = 30;

/** What stands before the keystroke; each time another text, so that there is something to compute. */
function before(at) {
    return `// ${[1, 2, 3, 4].map((step) => at + step).join(', ')},`;
}

/** Wall-clock times of the newest key and of the first grey text after it, as the page sees them. */
function watch() {
    const selector = '.ghost-text-decoration, .ghost-text-decoration-preview';
    const probe = (globalThis.probe = { key: 0, ghost: 0 });
    const now = () => performance.timeOrigin + performance.now();
    document.addEventListener('keydown', () => Object.assign(probe, { key: now(), ghost: 0 }), true);
    new MutationObserver(() => {
        if (probe.ghost === 0 && document.querySelector(selector)?.textContent) probe.ghost = now();
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
}

export async function latency(window, hone) {
    await window.file('latency.rs');
    await window.page.evaluate(watch);
    const ghost = () =>
        window.page
            .waitForFunction(() => globalThis.probe.ghost && globalThis.probe, null, { polling: 20, timeout: ANSWER_LIMIT_MS })
            .then((handle) => handle.jsonValue(), () => undefined);
    const samples = [];
    for (let at = 0; at < TRIES && samples.length < KEYSTROKES; at += 1) {
        await window.press('Control+a', 'Delete');
        await window.page.keyboard.insertText(before(at));
        // An offer made for that must be out of the way: going along it would cost the server nothing.
        await window.dismiss();
        const last = hone.lastOffer()?.id;
        await window.press('Space');
        const seen = await ghost();
        const offer = hone.lastOffer();
        // The model may have nothing to say here.
        if (seen && offer.id !== last) samples.push({ ...seen, served: offer.at_ms, server_ms: offer.timing.total_ms });
        await window.dismiss();
    }
    assert.equal(samples.length, KEYSTROKES, `of ${TRIES} keystrokes only so many had an offer`);
    const percentile = (share, figure) => {
        const sorted = samples.map(figure).sort((a, b) => a - b);
        return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]);
    };
    const path = ({ key, ghost, server_ms }) => ghost - key - server_ms - DEBOUNCE_MS;
    const figures = {
        'in the page': ({ key, ghost }) => ghost - key,
        'of it the server': ({ server_ms }) => server_ms,
        'of it VS Code’s debounce': () => DEBOUNCE_MS,
        'of it the way': path,
        '  from the key to the server': ({ key, served, server_ms }) => served - server_ms - key - DEBOUNCE_MS,
        '  from the server to the screen': ({ ghost, served }) => ghost - served,
    };
    console.log(`  keystroke to grey text, ${samples.length} keystrokes, load ${loadavg()[0].toFixed(1)}`);
    for (const [name, figure] of Object.entries(figures)) {
        console.log(`  ${name.padEnd(31)} p50 ${percentile(0.5, figure)} ms, p95 ${percentile(0.95, figure)} ms`);
    }
    const added = percentile(0.5, path);
    assert.ok(added <= PATH_LIMIT_MS, `the way adds ${added} ms at the median, more than ${PATH_LIMIT_MS} ms; is the machine busy?`);
}
