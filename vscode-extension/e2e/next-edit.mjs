// What a person does with next edits, and the outcome that the daemon must have logged.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, eventuallyAsked } from './hone.mjs';

const LOADS = [1, 2, 3, 4, 5].map((at) => `file.load(${at});\n`).join('');
/** The third place is far below the first two, so that it is not on screen. */
const FAR = `frame.parse(1);\nframe.parse(2);\n${'\n'.repeat(50)}frame.parse(3);\n`;
const TRACED = ['one', 'two', 'three', 'four']
    .map((name) => `fn ${name}() {\n    trace();\n    ${name}_of_many();\n}\n`)
    .join('\n');
const OPENED = ['one', 'two', 'three', 'four']
    .map((name) => `fn ${name}() {\n    open(${name});\n    read(${name});\n}\n`)
    .join('\n');

/** The fourth line is blank, where Tab indents. */
const FILLS = 'tank.fill(1);\ntank.fill(2);\ntank.fill(3);\n\ntank.fill(4);\n';

/** Nothing of a next edit is on screen. */
const NONE = { old: '', line: '', new: '', hint: '' };

/** Each story has a file of its own, so that the rule of one says nothing of another. */
export const files = {
    'agrees.rs': 'tape.record(1);\ntape.record(2);\ntape.record(3);\n',
    'deleted.rs': TRACED,
    'far.rs': FAR,
    'here.rs': 'queue.push(2);\nqueue.push(3);\n',
    'inserted.rs': OPENED,
    'moves.rs': 'wheel.turn(1);\nwheel.turn(2);\nwheel.turn(3);\n\n\nend();\n',
    'other.rs': 'queue.push(1);\n',
    'shut.rs': 'end();\nstack.pop_one(1);\n',
    'shutters.rs': 'stack.pop_one(2);\nstack.pop_one(3);\n',
    'thinks.rs': FILLS,
    'walk.rs': LOADS,
};

/** In the next line, replaces the name behind the dot by another, as a person does by hand. */
async function rename(window, object, name, other) {
    await window.press('Home');
    for (let at = 0; at <= object.length; at += 1) await window.press('ArrowRight');
    for (let at = 0; at < name.length; at += 1) await window.press('Shift+ArrowRight');
    await window.type(other);
}

/** Opens a file and renames the method in its first two lines. */
async function renameTwice(window, file, object, name, other) {
    await window.file(file);
    await window.press('Control+Home');
    await rename(window, object, name, other);
    await window.dismiss();
    await window.press('ArrowDown');
    await rename(window, object, name, other);
}

/** Changes the settings, and waits until the server has them. */
async function set({ set, hone }, settings) {
    set(settings);
    const value = () => JSON.parse(hone.run('config', 'get', 'completion.next_edit', '--json'));
    const wanted = settings['hone.completion.next_edit'] ?? 'subtle';
    await eventuallyAsked('config.toml has the setting', () => value() === wanted);
}

/** The least probability of a line that is offered. 1 leaves no completion. */
function leastProbability({ hone }, value) {
    hone.run('config', 'set', 'lab.min_token_probability', `${value}`);
}

/** Plays a story without completions, whose settings end with it. */
function alone(play) {
    return async (at) => {
        // Tab belongs to a completion and not to the next edit, so there must be none.
        leastProbability(at, 1);
        await set(at, {});
        try {
            await play(at);
        } finally {
            await set(at, {});
            leastProbability(at, 0);
        }
    };
}

/** Waits until the screen shows this edit, and nothing that a completion offers. */
async function shows(window, expected) {
    let found;
    const isShown = async () => {
        found = await window.nextEdit();
        return Object.entries(expected).every(([part, text]) => found[part] === text);
    };
    try {
        await eventually('the next edit is on screen', isShown);
    } catch (error) {
        throw new Error(`${error.message}; on screen is ${JSON.stringify(found)}`);
    }
}

/**
 * Presses the key until it finds a place in a file that is not open, as a person would. On a busy
 * machine the time of one search may not be enough. With a hint on screen the key would open that
 * file, so it is pressed again only when the window has said that there is no place, and has taken
 * that back.
 */
async function pressUntilHint(window) {
    const nowhere = window.page.locator('.statusbar-item', {
        hasText: 'Hone: What you changed twice fits no other place',
    });
    const answer = async () => {
        if ((await window.nextEdit()).hint !== '') return 'hint';
        return (await nowhere.isVisible()) ? 'nowhere' : undefined;
    };
    await eventually('the key finds a place in another file', async () => {
        await nowhere.waitFor({ state: 'detached' });
        await window.press('Alt+n');
        return (await eventually('the key has an answer', answer)) === 'hint';
    });
}

/** The outcomes of all next edits in a file, in order. */
function outcomes(hone, path) {
    const events = hone.events();
    const ids = events
        .filter((event) => event.event === 'next_edit' && event.path === path)
        .map(({ id }) => id);
    return events
        .filter(({ event, id }) => event === 'next_edit_outcome' && ids.includes(id))
        .map(({ outcome }) => outcome);
}

async function outcomesAre({ hone, workspace }, file, expected) {
    const found = () => outcomes(hone, join(workspace, file));
    await eventually('the outcomes are logged', () => found().length >= expected.length);
    assert.deepEqual(found(), expected);
}

async function isSaved({ window, workspace }, file, expected) {
    await window.press('Control+s');
    const read = () => readFileSync(join(workspace, file), 'utf8');
    await eventually(`${file} is saved as ${JSON.stringify(expected)}`, () => read() === expected);
}

const line = ({ page }) =>
    page.evaluate(() =>
        Number(
            /Ln (\d+)/.exec(
                document.querySelector('.statusbar-item[id="status.editor.selection"]').innerText,
            )[1],
        ),
    );

async function isAt(window, expected) {
    await eventually(
        `the cursor is in line ${expected}`,
        async () => (await line(window)) === expected,
    );
}

/** Goes to the next edit by Tab, once that is on screen, and makes it by Tab there. */
async function walkTo(window, number) {
    await window.press('Tab');
    await isAt(window, number);
    await window.isDrawn();
    await window.press('Tab');
}

/** Does something while the daemon answers nothing, as if a model took its time. */
async function whileItThinks({ hone }, act) {
    const { pid } = hone.status().daemon;
    process.kill(pid, 'SIGSTOP');
    try {
        await act();
    } finally {
        process.kill(pid, 'SIGCONT');
    }
}

/** Puts the cursor into this line of the open file, as far left as it goes. */
async function goTo(window, number) {
    await window.press('Control+Home');
    for (let at = 1; at < number; at += 1) await window.press('ArrowDown');
}

const played = {
    async 'the key goes to what comes next, Tab makes it and continues, and Escape rejects it'(at) {
        const { window } = at;
        await window.file('walk.rs');
        await window.press('Alt+n');
        const why =
            /Hone: (You have not just made the same edit twice|What you changed twice fits)/;
        const said = window.page.locator('.statusbar-item', { hasText: why });
        await said.waitFor();
        await renameTwice(window, 'walk.rs', 'file', 'load', 'fetch');
        await shows(window, NONE);
        await window.press('Alt+n');
        await shows(window, { old: 'load', new: 'fetch' });
        await said.waitFor({ state: 'detached' });
        await window.shot('next-edit');
        for (const number of [3, 4]) {
            if (number > 3) await window.press('Tab');
            await isAt(window, number);
            await window.isDrawn();
            await window.shot(`next-edit-there-${number}`);
            await window.press('Tab');
            await shows(window, { line: `file.load(${number + 1});` });
        }
        await window.press('Escape');
        await shows(window, NONE);
        await outcomesAre(at, 'walk.rs', ['accepted', 'accepted', 'rejected']);
        const left = LOADS.replaceAll('load', 'fetch').replace('fetch(5)', 'load(5)');
        await isSaved(at, 'walk.rs', left);
        await window.press('Control+z');
        await isSaved(at, 'walk.rs', left.replace('fetch(4)', 'load(4)'));
    },

    async 'as you edit, the next edit comes by itself, and a hint says how far away it is'(at) {
        const { window } = at;
        await set(at, { 'hone.completion.next_edit': 'on' });
        await renameTwice(window, 'far.rs', 'frame', 'parse', 'decode');
        // A pause after any key brings it, if the gate lets it through.
        await shows(window, { hint: '→ 51 lines below (Tab)' });
        await window.shot('next-edit-far');
        await window.press('Tab');
        await isAt(window, 53);
        await shows(window, { old: 'parse', new: 'decode', hint: '' });
        await window.press('Tab');
        await isSaved(at, 'far.rs', FAR.replaceAll('parse', 'decode'));
        await outcomesAre(at, 'far.rs', ['accepted']);
    },

    async 'lines that were deleted twice are deleted where they come next'(at) {
        const { window } = at;
        const trace = '    trace();\n';
        await window.file('deleted.rs');
        await goTo(window, 2);
        await window.press('Control+Shift+K');
        await goTo(window, 6);
        await window.press('Control+Shift+K', 'Alt+n');
        await shows(window, { old: '    trace();', new: '' });
        await window.shot('next-edit-deleted');
        await window.press('Tab');
        const last = TRACED.lastIndexOf(trace);
        const left = TRACED.slice(0, last).replaceAll(trace, '') + TRACED.slice(last);
        await isSaved(at, 'deleted.rs', left);
        await shows(window, { old: '    trace();', new: '' });
        await walkTo(window, 14);
        await isSaved(at, 'deleted.rs', TRACED.replaceAll(trace, ''));
        await outcomesAre(at, 'deleted.rs', ['accepted', 'accepted']);
    },

    async 'lines that were inserted twice are inserted where they come next'(at) {
        const { window } = at;
        await window.file('inserted.rs');
        for (const [number, name] of [
            [2, 'one'],
            [8, 'two'],
        ]) {
            await goTo(window, number);
            await window.press('End');
            await window.type(`\ncheck(${name});`);
            await window.dismiss();
        }
        await window.press('Alt+n');
        await shows(window, { old: '', new: ' ⏎ check(three);' });
        await window.shot('next-edit-inserted');
        await window.press('Tab');
        await shows(window, { old: '', new: ' ⏎ check(four);' });
        await walkTo(window, 21);
        const whole = OPENED.replaceAll(
            /open\((.*)\);\n/g,
            (open, name) => `${open}    check(${name});\n`,
        );
        await isSaved(at, 'inserted.rs', whole);
        await outcomesAre(at, 'inserted.rs', ['accepted', 'accepted']);
    },

    async 'the next edit may be in another file that is open, and the key goes there'(at) {
        const { window } = at;
        await window.file('other.rs');
        await renameTwice(window, 'here.rs', 'queue', 'push', 'append');
        await window.command('Hone: Next Edit');
        await window.page.locator('.tab.active[data-resource-name="other.rs"]').waitFor();
        await shows(window, { old: 'push', new: 'append', hint: '' });
        await window.shot('next-edit-other');
        await window.press('Tab');
        await isSaved(at, 'other.rs', 'queue.append(1);\n');
        await outcomesAre(at, 'other.rs', ['accepted']);
    },

    async 'the key finds the next edit in a file that is not open, and Tab opens it'(at) {
        const { window } = at;
        await renameTwice(window, 'shutters.rs', 'stack', 'pop_one', 'take_one');
        await pressUntilHint(window);
        await shows(window, { old: '', new: '', hint: '→ shut.rs:2 (Tab)' });
        await window.shot('next-edit-shut');
        await window.press('Tab');
        await window.page.locator('.tab.active[data-resource-name="shut.rs"]').waitFor();
        await isAt(window, 2);
        await shows(window, { old: 'pop_one', new: 'take_one', hint: '' });
        await window.press('Tab');
        await isSaved(at, 'shut.rs', 'end();\nstack.take_one(1);\n');
        await outcomesAre(at, 'shut.rs', ['accepted']);
    },

    async 'while the next edit is thought of, Tab is the user’s'(at) {
        const { window } = at;
        await renameTwice(window, 'thinks.rs', 'tank', 'fill', 'drain');
        await window.press('Alt+n');
        await shows(window, { old: 'fill', new: 'drain' });
        await isAt(window, 3);
        const made = FILLS.replaceAll('fill', 'drain').replace('drain(4)', 'fill(4)');
        await whileItThinks(at, async () => {
            await window.press('Tab');
            await isSaved(at, 'thinks.rs', made);
            await window.press('ArrowDown', 'Home', 'Tab');
            await isSaved(at, 'thinks.rs', made.replace('\n\n', '\n    \n'));
            await isAt(window, 4);
        });
        await outcomesAre(at, 'thinks.rs', ['accepted']);
        await shows(window, NONE);
    },

    async 'who moves on while the key waits for an edit is shown it, and stays where they are'(at) {
        const { window } = at;
        await renameTwice(window, 'moves.rs', 'wheel', 'turn', 'spin');
        await whileItThinks(at, async () => {
            await window.press('Alt+n', 'Control+End');
            await isAt(window, 7);
        });
        await shows(window, { old: 'turn', new: 'spin' });
        await isAt(window, 7);
        await window.press('Alt+n');
        await isAt(window, 3);
    },

    async 'typing that agrees with an edit leaves the rest on screen, and the key makes that'(at) {
        const { window } = at;
        await renameTwice(window, 'agrees.rs', 'tape', 'record', 'play_back');
        await window.press('Alt+n');
        await shows(window, { old: 'record', new: 'play_back' });
        await isAt(window, 3);
        for (let key = 0; key < 'record'.length; key += 1) await window.press('Shift+ArrowRight');
        await window.type('play');
        await shows(window, { old: '', new: '_back', hint: '' });
        await window.shot('next-edit-typed');
        // Tab may belong to the suggestion list, which has the word of the first two lines.
        await window.press('Alt+n');
        await isSaved(at, 'agrees.rs', files['agrees.rs'].replaceAll('record', 'play_back'));
    },
};

export const stories = Object.fromEntries(
    Object.entries(played).map(([name, play]) => [name, alone(play)]),
);
