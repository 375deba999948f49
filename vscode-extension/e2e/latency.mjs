// From a keystroke to grey text in the page, beside what the server took of it.

import assert from 'node:assert/strict';

const KEYSTROKES = 36;
const KEYSTROKES_MIN = 30;
const ANSWER_LIMIT_MS = 3_000;
const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

/** What stands before the keystroke; each time another text, so that there is something to compute. */
function before(at) {
    const days = [0, 1, 2].map((day) => DAYS[(at + day) % DAYS.length]);
    return `// ${days.join(', ')},`;
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
    for (let at = 0; at < KEYSTROKES; at += 1) {
        await window.press('Control+a', 'Delete');
        await window.page.keyboard.insertText(before(at));
        await ghost();
        // Turned down, so that the keystroke does not just go along it.
        await window.press('Escape');
        await window.noGhost();
        await window.press('Space');
        const page_ms = await ghost();
        // The model may have nothing to say here.
        if (page_ms !== undefined) samples.push({ page_ms, server_ms: hone.lastOffer().timing.total_ms });
        await window.press('Escape');
    }
    assert.ok(samples.length >= KEYSTROKES_MIN, `${samples.length} of ${KEYSTROKES} keystrokes had an offer`);
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
