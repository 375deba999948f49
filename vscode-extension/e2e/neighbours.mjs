// Hone next to what else changes the text in VS Code: several cursors, snippets, and what is done
// when a file saves itself.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from './hone.mjs';

const WEEK = '// Monday, Tuesday, Wednesday,';

export const FILES = {
    'cursors.rs': `\n${WEEK}`,
    'saving.rs': '',
    'snippet.js': '',
};

async function isAccepted({ window, hone }, offer) {
    await window.press('Tab');
    await eventually('an outcome is logged', () => hone.outcomes(offer.id).length > 0);
    const expected = [{ kind: 'accepted', evidence: 'document' }];
    assert.deepEqual(hone.outcomes(offer.id), expected);
}

/** Saves the file, and waits until its text on the disk matches. */
async function savedAs({ window, workspace }, file, expected) {
    await window.press('Control+s');
    const read = () => readFileSync(join(workspace, file), 'utf8');
    await eventually(`${file} is saved as ${expected}`, () => expected.test(read()));
}

export const stories = {
    async 'with several cursors an offer is accepted at all of them, and judged once'(at) {
        const { window, hone } = at;
        await window.file('cursors.rs');
        await window.press('Control+Home');
        await window.insert(WEEK);
        await window.command('Add Cursor Below');
        await window.type(' ');
        const offer = await window.offer(hone, 2);
        await window.shot('cursors');
        await isAccepted(at, offer);
        await savedAs(at, 'cursors.rs', new RegExp(`^(${WEEK} ${offer.ghost}\n?){2}$`));
    },

    async 'an offer stays while the file saves itself'(at) {
        const { window, hone, workspace } = at;
        at.set({
            'files.autoSave': 'afterDelay',
            'files.autoSaveDelay': 300,
        });
        await window.file('saving.rs');
        await window.insert(WEEK);
        await window.type(' ');
        const offer = await window.offer(hone);
        const file = () => readFileSync(join(workspace, 'saving.rs'), 'utf8');
        await eventually('the file is saved', () => file().startsWith(WEEK));
        await window.isDrawn();
        assert.equal(await window.ghost(), offer.ghost, 'it is still on screen');
        await isAccepted(at, offer);
        await eventually('it is saved again', () => file().includes(offer.ghost));
        at.set({});
    },

    async 'in a snippet Tab goes to the next place'(at) {
        const { window } = at;
        await window.file('snippet.js');
        await window.command('Snippets: Insert Snippet');
        await window.page.locator('.quick-input-list', { hasText: 'Class Definition' }).waitFor();
        await window.type('forof');
        await window.choose('For-Of Loop');
        await window.page.locator('.view-line', { hasText: /for.\(const/ }).waitFor();
        await window.isDrawn();
        await window.shot('snippet');
        await window.press('Tab');
        await window.insert('days');
        await window.press('Escape');
        await savedAs(at, 'snippet.js', /^for \(const \w+ of days\) \{/);
    },
};
