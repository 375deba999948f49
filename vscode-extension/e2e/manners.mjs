// How Hone behaves in the window: it says why nothing is shown, shows it all the same, is as eager
// as the user wants, is silent for a while, and reads the cells of a notebook above.

import assert from 'node:assert/strict';
import { eventually, eventuallyAsked } from './hone.mjs';

const cell = (source, id) => ({
    cell_type: 'code',
    execution_count: null,
    id,
    metadata: {},
    outputs: [],
    source,
});
/** Only the cell above has the name that the cell below begins. */
const NOTEBOOK = {
    cells: [cell(['lanterns_lit = 7\n', 'print(lanterns_lit)'], 'above'), cell([], 'below')],
    metadata: { language_info: { name: 'python' } },
    nbformat: 4,
    nbformat_minor: 5,
};

/** The model continues this with `4, 5);`. The editor closes the bracket. */
const SUMS = 'sum(1, 2);\nsum(2, 3);\nsum(3, 4);\n';
const NEXT_SUM = 'sum(';

export const FILES = {
    'why.rs': SUMS,
    'snooze.rs': SUMS,
    'cells.ipynb': JSON.stringify(NOTEBOOK),
};

/** Writes a sum, and nothing is offered. The status bar says why. */
async function nothingIsOffered({ window, hone }, file, why) {
    await window.file(file);
    await window.type(NEXT_SUM);
    // That comes with the answer, which brings an offer or none.
    await eventually('the status bar says why nothing is shown', async () =>
        (await window.statusTooltip()).includes(`Nothing is shown here: ${why}`),
    );
    await window.isDrawn();
    assert.equal(await window.ghost(), '');
    assert.equal(offersIn(hone, file).length, 0);
}

function offersIn(hone, file) {
    return hone.offers().filter(({ path }) => path.endsWith(file));
}

function takesTheNextSum(at, file, shot) {
    return takes(at, file, '4, 5', shot);
}

/** Waits for an offer that begins with `text`, and takes it. Returns its event. */
async function takes({ window, hone }, file, text, shot) {
    const isThere = async () => (await window.ghost()).startsWith(text);
    await eventually(`an offer begins with ${text}`, isThere);
    hone.offerWasRead();
    await window.shot(shot);
    await window.press('Tab');
    const isAccepted = ({ id }) => hone.outcomes(id).some(({ kind }) => kind === 'accepted');
    return eventually('it is accepted', () => offersIn(hone, file).find(isAccepted));
}

function setting(hone, key) {
    return JSON.parse(hone.run('config', 'get', key, '--json'));
}

export const stories = {
    async 'the status bar says why nothing is shown, and it is shown all the same'(at) {
        const { window, hone } = at;
        hone.run('config', 'set', 'lab.min_token_probability', '1');
        await nothingIsOffered(at, 'why.rs', 'The model was not sure');
        await window.shot('why-tooltip');
        await window.command('Hone: Why Is Nothing Shown?');
        const answer = window.notification('The model was not sure');
        await answer.waitFor();
        await window.shot('why');
        const [, remedy] = (await answer.innerText()).match(/To change it: hone (.+)/);
        await answer.getByRole('button', { name: 'Show It All the Same' }).click();
        const { decision } = await takesTheNextSum(at, 'why.rs', 'why-shown');
        assert.equal(decision.invoked, true, 'the request counts as invoked');
        hone.run(...remedy.split(' '));
        assert.equal(setting(hone, 'lab.min_token_probability'), 0);
    },

    async 'where nothing was learned yet there is nothing to roll back, which is no error'({
        window,
    }) {
        await window.command('Hone: Roll Back the Adapter');
        await window.notification('nothing was learned yet').locator('.codicon-info').waitFor();
    },

    async 'the menu has the other commands behind its last entry'({ window }) {
        await window.clickStatus();
        await window.shot('menu');
        await window.choose('More');
        await window.row('Take back what was learned').waitFor();
        await window.shot('menu-more');
        await window.choose('Status');
        await window.notification('judged offers were accepted').waitFor();
    },

    async 'the status bar changes how readily offers are made'(at) {
        const { window, hone } = at;
        const eagerness = () => setting(hone, 'completion.eagerness');
        for (const [now, wanted] of [
            ['balanced', 'quiet'],
            ['quiet', 'balanced'],
        ]) {
            await window.clickStatus();
            await window.choose(`Eagerness: ${now}`);
            const focused = () => window.focusedChoice();
            await eventually('the list starts at what is set', async () =>
                (await focused()).startsWith(now),
            );
            await window.shot('eagerness');
            await window.choose(wanted);
            await eventuallyAsked(`config.toml has ${wanted}`, () => eagerness() === wanted);
        }
    },

    async 'a snoozed file has no offers until the snooze ends'(at) {
        const { window, hone } = at;
        const snooze = async (choice) => {
            await window.clickStatus();
            await window.choose('Snooze');
            await window.shot('snooze');
            await window.choose(choice);
        };
        await window.file('snooze.rs');
        await snooze('In this file');
        await nothingIsOffered(at, 'snooze.rs', 'Completions are paused');
        await window.statusIs('snoozed');
        await window.shot('snoozed');
        await snooze('End the snooze');
        await window.press('Backspace');
        await window.type('(');
        await takesTheNextSum(at, 'snooze.rs', 'snooze-ended');
        await window.statusIs('ready');
    },

    async 'a cell of a notebook is completed from the cell above'(at) {
        const { window, hone } = at;
        await window.openFile('cells.ipynb');
        const below = window.page.locator('.notebook-editor .cell .view-lines').nth(1);
        await below.click();
        await window.type('print(lan');
        await takes(at, 'cells.ipynb', 'terns_lit', 'notebook');
        await window.command('View: Revert and Close Editor');
    },
};
