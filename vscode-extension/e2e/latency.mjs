// From a keystroke to grey text in the page, beside what the server took of it.

import assert from 'node:assert/strict';

/** Keystrokes with an offer that the figures are from, and how many are tried for them. */
const KEYSTROKES = 32;
const TRIES = 2 * KEYSTROKES;
const ANSWER_LIMIT_MS = 4_000;

/** What stands before the keystroke; each time another text, so that there is something to compute. */
function before(at) {
    return `// ${[1, 2, 3, 4].map((step) => at + step).join(', ')},`;
}

export async function latency(window, hone) {
    await window.file('latency.rs');
    await window.page.evaluate(() => {
        const selector = '.ghost-text-decoration, .ghost-text-decoration-preview';
        const probe = (globalThis.probe = { key: 0, ghost: 0 });
        document.addEventListener('keydown', () => Object.assign(probe, { key: performance.now(), ghost: 0 }), true);
        new MutationObserver(() => {
            if (probe.ghost === 0 && document.querySelector(selector)?.textContent) probe.ghost = performance.now();
        }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    const ghost = () =>
        window.page
            .waitForFunction(() => globalThis.probe.ghost && globalThis.probe.ghost - globalThis.probe.key, null, { polling: 20, timeout: ANSWER_LIMIT_MS })
            .then((handle) => handle.jsonValue(), () => undefined);
    const samples = [];
    for (let at = 0; at < TRIES && samples.length < KEYSTROKES; at += 1) {
        await window.press('Control+a', 'Delete');
        await window.page.keyboard.insertText(before(at));
        // An offer made for that must be out of the way: going along it would cost the server nothing.
        await window.dismiss();
        const last = hone.lastOffer()?.id;
        await window.press('Space');
        const page_ms = await ghost();
        const offer = hone.lastOffer();
        // The model may have nothing to say here.
        if (page_ms !== undefined && offer.id !== last) samples.push({ page_ms, server_ms: offer.timing.total_ms });
        await window.dismiss();
    }
    assert.equal(samples.length, KEYSTROKES, `of ${TRIES} keystrokes only so many had an offer`);
    const row = (name, values) => {
        const sorted = values.sort((a, b) => a - b);
        const at = (share) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]);
        return `${name.padEnd(28)} p50 ${at(0.5)} ms, p95 ${at(0.95)} ms`;
    };
    console.log(`  keystroke to grey text, ${samples.length} keystrokes`);
    console.log(`  ${row('in the page', samples.map((s) => s.page_ms))}`);
    console.log(`  ${row('of it the server', samples.map((s) => s.server_ms))}`);
    console.log(`  ${row('the editor’s path', samples.map((s) => s.page_ms - s.server_ms))}`);
}
