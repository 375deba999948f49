// Measures the time from a keystroke to grey text in the page, and the server's part of it.

import assert from 'node:assert/strict';
import { loadavg } from 'node:os';

/** How many keystrokes with an offer are measured, and how many are tried for them. */
const KEYSTROKES = 24;
const TRIES = 2 * KEYSTROKES;
const ANSWER_LIMIT_MS = 4_000;

/**
 * VS Code waits this long after a key before it asks (`InlineCompletionsDebounce`, minimum and
 * maximum).
 */
const DEBOUNCE_MS = 50;
/** How much the way to Hone's server and back may add to the editor's own time, at the median. */
const WAY_LIMIT_MS = 30;

/** The text before the keystroke. It differs each time, so that there is something to compute. */
function before(at) {
    return `// ${[1, 2, 3, 4].map((step) => at + step).join(', ')},`;
}

/**
 * Records when the newest key was pressed and when grey text first came after it, as the page sees
 * it.
 */
function watch() {
    const selector = '.ghost-text-decoration, .ghost-text-decoration-preview';
    const probe = (globalThis.probe = { key: 0, ghost: 0 });
    const now = () => performance.timeOrigin + performance.now();
    document.addEventListener(
        'keydown',
        () => Object.assign(probe, { key: now(), ghost: 0 }),
        true,
    );
    new MutationObserver(() => {
        if (probe.ghost === 0 && document.querySelector(selector)?.textContent) probe.ghost = now();
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
}

export async function latency(window, hone) {
    await window.page.evaluate(watch);
    const instant = await keystrokes(window, 'instant.txt', () => ({
        served: undefined,
        serverMs: 0,
    }));
    let last;
    const samples = await keystrokes(window, 'latency.rs', () => {
        const { id, at_ms, timing } = hone.lastOffer() ?? {};
        // The model may have no offer here.
        const isNew = id !== last;
        last = id;
        return isNew && { served: at_ms, serverMs: timing.total_ms };
    });
    const total = ({ key, ghost }) => ghost - key;
    const rest = (sample) => total(sample) - sample.serverMs - DEBOUNCE_MS;
    const rows = [
        ['in the page', samples, total],
        ['of it the server', samples, ({ serverMs }) => serverMs],
        ['of it VS Code’s debounce', samples, () => DEBOUNCE_MS],
        ['of it the way', samples, rest],
        [
            '  from the key to the server',
            samples,
            ({ key, served, serverMs }) => served - serverMs - key - DEBOUNCE_MS,
        ],
        ['  from the server to the screen', samples, ({ ghost, served }) => ghost - served],
        ['the way without Hone', instant, rest],
    ];
    console.log(
        `  keystroke to grey text, ${samples.length} keystrokes, load ${loadavg()[0].toFixed(1)}`,
    );
    for (const [name, of, figure] of rows) {
        const [p50, p95] = [0.5, 0.95].map((share) => percentile(share, of, figure));
        console.log(`  ${name.padEnd(31)} p50 ${p50} ms, p95 ${p95} ms`);
    }
    const added = percentile(0.5, samples, rest) - percentile(0.5, instant, rest);
    console.log(`  Hone’s way adds ${added} ms at the median`);
    assert.ok(added <= WAY_LIMIT_MS, `more than ${WAY_LIMIT_MS} ms; is the machine busy?`);
}

/**
 * Types into the file until enough keys had grey text. `answered` describes the answer, if there
 * was one.
 */
async function keystrokes(window, file, answered) {
    await window.file(file);
    const ghost = () =>
        window.page
            .waitForFunction(() => globalThis.probe.ghost && globalThis.probe, null, {
                polling: 20,
                timeout: ANSWER_LIMIT_MS,
            })
            .then(
                (handle) => handle.jsonValue(),
                () => undefined,
            );
    const samples = [];
    for (let at = 0; at < TRIES && samples.length < KEYSTROKES; at += 1) {
        await window.press('Control+a', 'Delete');
        await window.page.keyboard.insertText(before(at));
        // The offer for this text must be gone, because typing along it would cost the server
        // nothing.
        await window.dismiss();
        answered();
        await window.press('Space');
        const seen = await ghost();
        const answer = answered();
        if (seen && answer) samples.push({ ...seen, ...answer });
        await window.dismiss();
    }
    assert.equal(
        samples.length,
        KEYSTROKES,
        `of ${TRIES} keystrokes in ${file} only so many had an offer`,
    );
    return samples;
}

function percentile(share, samples, figure) {
    const sorted = samples.map(figure).sort((a, b) => a - b);
    return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]);
}
