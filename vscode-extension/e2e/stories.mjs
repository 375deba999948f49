// What a person does, and the label that the daemon must have logged for it.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as firstStart from './first-start.mjs';
import { eventually, eventuallyAsked } from './hone.mjs';
import * as manners from './manners.mjs';
import * as neighbours from './neighbours.mjs';
import * as nextEdit from './next-edit.mjs';

/** Even the smallest model continues this with `Thursday, Friday, …`. */
const WEEK = '// Monday, Tuesday, Wednesday,';

/** The model continues this with `sum(4, 5);`. */
const SUMS = 'sum(1, 2);\nsum(2, 3);\nsum(3, 4);\n';

/**
 * How long an update may stay at the same piece of its work. The whole of it may take minutes,
 * because the learner has the lowest priority and the machine is busy.
 */
const PIECE_LIMIT_MS = 120_000;

/** What the doctor may note on a machine that is busy, or that has a GPU which is not used. */
const OF_THE_MACHINE = ['Speed', 'Memory', 'GPU'];

/** The title of the learning report. */
const REPORT = 'What your Tab key taught Hone';

/** A real file of this repository. */
const SOURCE = readFileSync(new URL('../../feedback/src/clock.rs', import.meta.url), 'utf8');

/** Each story has a file of its own, so that offers do not mix. */
export const FILES = {
    'clock.rs': SOURCE,
    'dismiss.rs': '',
    'over.rs': '',
    'through.rs': '',
    'word.rs': '',
    'words.rs': '',
    'line.rs': '',
    'late.rs': '',
    'away.rs': '',
    'off.rs': '',
    'off-everywhere.rs': '',
    'indent.rs': '',
    'suggest.rs': 'fn wednesday_evening() {}\n',
    'restart.rs': '',
    'another.rs': '',
    'short.rs': '',
    'untrusted.rs': '',
    'walkthrough.rs': '',
    'latency.rs': '',
    'brackets.rs': SUMS,
    'instant.txt': '',
    'learned.rs': '',
    ...manners.FILES,
    ...neighbours.FILES,
    ...nextEdit.files,
};

/**
 * Writes the week and waits for an offer that continues it. The text is inserted at once and only
 * the last key is pressed, which saves two seconds. `keyByKey` types all of it.
 */
async function week({ window, hone }, file, { keyByKey = false } = {}) {
    await window.file(file);
    if (keyByKey) await window.type(WEEK);
    else await window.insert(WEEK);
    await window.type(' ');
    return window.offer(hone);
}

async function outcomesAre(hone, { id }, expected) {
    await eventually('an outcome is logged', () => hone.outcomes(id).length > 0);
    assert.deepEqual(hone.outcomes(id), expected);
}

/** With the proposed API, the editor reports once that an offer was on screen. */
function shownIsReported({ hone, proposedApi }, { id }) {
    assert.equal(hone.eventsOf('shown', id).length, proposedApi ? 1 : 0);
}

async function saved({ window, workspace }, file, expected) {
    await window.press('Control+s');
    const read = () => readFileSync(join(workspace, file), 'utf8');
    await eventually(`${file} is saved as ${JSON.stringify(expected)}`, () => read() === expected);
}

async function anotherDaemon({ window, hone }, pid) {
    // While a daemon starts, nobody else can read its log.
    const now = () => {
        try {
            return hone.status().daemon;
        } catch {
            return undefined;
        }
    };
    const serves = (daemon) => daemon?.sessions === 1 && daemon.pid !== pid;
    await eventuallyAsked('another daemon serves', () => serves(now()));
    await window.statusIs('ready');
}

/** Waits for the first adapter as long as the learner gets on. */
async function adapterServes(hone) {
    let last;
    const serves = () => {
        const { adapter, learner } = hone.status();
        if (adapter.active === 1) return true;
        assert.equal(learner.last_error, null);
        const now = `${learner.state} ${learner.progress ?? ''}`;
        if (now !== last?.work) last = { work: now, since: Date.now() };
        if (Date.now() - last.since > PIECE_LIMIT_MS) {
            throw new Error(`no adapter serves, and the learner stays at: ${now}`);
        }
        return false;
    };
    await eventuallyAsked('an adapter serves', serves, Infinity);
}

/** Nothing is asked as the user types, Hone says why, and what is asked for is answered. */
async function isOff({ window, hone }, reason) {
    await window.statusIs('off');
    const before = hone.completions().length;
    await window.type(`${WEEK} `);
    assert.equal(await window.ghost(), '');
    await window.command('Hone: Why Is Nothing Shown?');
    await window.notification(reason).waitFor();
    await window.command('Hone: Complete Here Now');
    // An offer that is asked for may have several lines.
    const isThere = async () => (await window.ghost()).startsWith('Thursday');
    await eventually('what is asked for is answered', isThere);
    hone.offerWasRead();
    await window.dismiss();
    const asked = hone.completions().slice(before);
    const unasked = asked.filter(({ decision }) => !decision.invoked);
    assert.deepEqual(unasked, [], 'nothing else was asked, and answered before');
}

export const stories = {
    async 'Tab accepts the offer in a source file, which is saved with it'(at) {
        const offer = await week(at, 'clock.rs', { keyByKey: true });
        await at.window.shot('ghost');
        await at.window.press('Tab');
        await at.window.noGhost();
        await saved(at, 'clock.rs', `${SOURCE}${WEEK} ${offer.ghost}`);
        // The change in the document is the evidence. The command that follows says the same.
        await outcomesAre(at.hone, offer, [{ kind: 'accepted', evidence: 'document' }]);
        shownIsReported(at, offer);
    },

    async 'Escape rejects the offer'(at) {
        const offer = await week(at, 'dismiss.rs');
        await at.window.press('Escape');
        await at.window.noGhost();
        await outcomesAre(at.hone, offer, [{ kind: 'rejected_esc', evidence: 'client_notice' }]);
    },

    async 'typing something else rejects the offer'(at) {
        const offer = await week(at, 'over.rs');
        await at.window.type('#');
        await outcomesAre(at.hone, offer, [{ kind: 'rejected_edit', evidence: 'document' }]);
    },

    async 'typing along keeps the offer, which is reported as shown once'(at) {
        const offer = await week(at, 'through.rs', { keyByKey: true });
        await at.window.type(offer.ghost.slice(0, -1), 120);
        assert.deepEqual(at.hone.outcomes(offer.id), []);
        await at.window.type(offer.ghost.slice(-1));
        await outcomesAre(at.hone, offer, [
            { kind: 'typed_through', utf16: offer.text.length, evidence: 'document' },
        ]);
        shownIsReported(at, offer);
    },

    async 'an accepted word is a part'(at) {
        const offer = await week(at, 'word.rs', { keyByKey: true });
        await at.window.press('Control+ArrowRight');
        const reported = () => at.hone.eventsOf('partly_accepted', offer.id);
        await eventually('a part is logged', () => reported().length > 0);
        await at.window.isDrawn();
        await at.window.shot('word');
        // The offer may have been made a few keys earlier and typed along since.
        assert.ok(offer.text.endsWith(offer.ghost), `${offer.text} ends with ${offer.ghost}`);
        const [word] = /^\s*\w+/.exec(offer.ghost);
        const taken = offer.text.length - offer.ghost.length + word.length;
        await at.window.type('#');
        await outcomesAre(at.hone, offer, [
            { kind: 'partly_accepted', utf16: taken, evidence: 'document' },
        ]);
        const parts = reported().map(({ accepted_utf16 }) => accepted_utf16);
        assert.deepEqual(parts, [taken], 'the part is reported once');
        await saved(at, 'word.rs', `${WEEK} ${word}#`);
    },

    async 'accepting word after word to the end accepts the whole'(at) {
        const offer = await week(at, 'words.rs');
        const parts = () => at.hone.eventsOf('partly_accepted', offer.id).length;
        const isOver = () => at.hone.outcomes(offer.id).length > 0;
        while (!isOver()) {
            const before = parts();
            await at.window.press('Control+ArrowRight');
            await eventually('a word is accepted', () => parts() > before || isOver());
        }
        await outcomesAre(at.hone, offer, [{ kind: 'accepted', evidence: 'document' }]);
    },

    async 'an accepted line is the whole of a one-line offer'(at) {
        const offer = await week(at, 'line.rs');
        await at.window.press('Control+Alt+ArrowRight');
        await outcomesAre(at.hone, offer, [{ kind: 'accepted', evidence: 'document' }]);
        await saved(at, 'line.rs', `${WEEK} ${offer.ghost}`);
    },

    async 'an offer continues behind the bracket that the editor closed'(at) {
        await at.window.file('brackets.rs');
        await at.window.type('sum(');
        await eventually(
            'grey text on both sides of the bracket',
            async () => (await at.window.ghost()) === '4, 5;',
        );
        const { id } = at.hone.lastOffer();
        at.hone.offerWasRead();
        await at.window.shot('brackets');
        await at.window.press('Tab');
        await saved(at, 'brackets.rs', `${SUMS}sum(4, 5);`);
        await outcomesAre(at.hone, { id }, [{ kind: 'accepted', evidence: 'document' }]);
    },

    async 'another of several offers is shown and accepted, and it alone gets a verdict'(at) {
        const before = at.hone.offers().length;
        const offer = await week(at, 'another.rs');
        await at.window.press('Alt+]');
        const other = await eventually('another offer is on screen', async () => {
            const ghost = await at.window.ghost();
            return ghost !== offer.ghost ? ghost : undefined;
        });
        await at.window.shot('another');
        await at.window.press('Tab');
        await saved(at, 'another.rs', `${WEEK} ${other}`);
        // VS Code may have asked twice, and only one of two offers with this text was on screen.
        const accepted = await eventually('the acceptance is logged', () =>
            at.hone
                .offers()
                .slice(before)
                .find(
                    ({ id, shown }) =>
                        shown.endsWith(other) && at.hone.outcomes(id)[0]?.kind === 'accepted',
                ),
        );
        // A slow machine may need more than ten seconds to make other offers.
        for (const { id } of at.hone.offers().slice(before)) {
            if (id === accepted.id) continue;
            for (const { kind } of at.hone.outcomes(id)) {
                assert.match(kind, /superseded|unseen|rejected_timeout/);
            }
        }
    },

    async 'an offer that stays for ten seconds is rejected, until it is accepted after all'(at) {
        const offer = await week(at, 'late.rs');
        at.hone.advanceClock(10_500);
        await outcomesAre(at.hone, offer, [{ kind: 'rejected_timeout', evidence: 'clock' }]);
        assert.equal(await at.window.ghost(), offer.ghost, 'it is still on screen');
        await at.window.press('Tab');
        await eventually('the acceptance is logged', () => at.hone.outcomes(offer.id).length > 1);
        await outcomesAre(at.hone, offer, [
            { kind: 'rejected_timeout', evidence: 'clock' },
            { kind: 'accepted', evidence: 'command' },
        ]);
    },

    async 'moving the cursor away is no rejection'(at) {
        const offer = await week(at, 'away.rs');
        await at.window.press('Control+Home');
        await outcomesAre(at.hone, offer, [{ kind: 'superseded', evidence: 'client_notice' }]);
    },

    async 'with hone.enabled off there are offers only where they are asked for'(at) {
        await at.window.file('off-everywhere.rs');
        at.set({ 'hone.enabled': false });
        await isOff(at, 'Hone is off in this editor');
        at.set({});
        await at.window.statusIs('ready');
    },

    async 'switched off there are no offers, and switched on again there are'(at) {
        await at.window.file('off.rs');
        await at.window.command('Hone: Turn On or Off for This Language');
        await isOff(at, 'Hone is off for rust in this editor');
        await at.window.command('Hone: Turn On or Off for This Language');
        await at.window.statusIs('ready');
        await at.window.press('Backspace');
        await at.window.type(' ');
        const offer = await at.window.offer(at.hone);
        await at.window.press('Escape');
        await outcomesAre(at.hone, offer, [{ kind: 'rejected_esc', evidence: 'client_notice' }]);
    },

    async 'a server setting reaches the server, and goes back when it is removed'(at) {
        const chars = () =>
            JSON.parse(at.hone.run('config', 'get', 'completion.context_chars', '--json'));
        const usual = chars();
        at.set({ 'hone.completion.context_chars': 400 });
        await eventuallyAsked('config.toml has it', () => chars() === 400);
        at.set({});
        await eventuallyAsked('config.toml does not have it any more', () => chars() === usual);
    },

    async 'without an offer Tab indents'(at) {
        await at.window.file('indent.rs');
        await at.window.press('Escape', 'Tab');
        await at.window.type('x');
        await at.window.press('Escape');
        await saved(at, 'indent.rs', '    x');
    },

    async 'while the suggestion list is open, Tab and Escape belong to the list'(at) {
        await at.window.file('suggest.rs');
        await at.window.type('wednes');
        await at.window.press('Control+Space');
        await at.window.page.locator('.suggest-widget.visible .monaco-list-row.focused').waitFor();
        await at.window.press('Escape');
        await at.window.page.locator('.suggest-widget.visible').waitFor({ state: 'detached' });
        await at.window.press('Control+Space');
        await at.window.page.locator('.suggest-widget.visible .monaco-list-row.focused').waitFor();
        const accepted = () =>
            at.hone.events().filter(({ outcome }) => outcome?.kind === 'accepted').length;
        const before = accepted();
        await at.window.press('Tab');
        await at.window.page.locator('.suggest-widget.visible').waitFor({ state: 'detached' });
        await at.window.press('Escape');
        await saved(at, 'suggest.rs', 'fn wednesday_evening() {}\nwednesday_evening');
        assert.equal(accepted(), before, 'no offer was accepted');
    },

    async 'a daemon that ends is restarted'(at) {
        const { pid } = at.hone.status().daemon;
        at.hone.run('stop');
        await anotherDaemon(at, pid);
        const offer = await week(at, 'restart.rs');
        await at.window.press('Tab');
        await outcomesAre(at.hone, offer, [{ kind: 'accepted', evidence: 'document' }]);
    },

    async 'an untrusted folder has offers, and a rehearsal once it is trusted'(at) {
        const [window, entry] = [at.window, 'Hone: Rehearse on This Workspace'];
        const rehearsal = async () => {
            await window.palette('Hone: ');
            await eventually('the palette has answered', async () =>
                (await window.choices()).includes('Hone: Doctor'),
            );
            const offered = (await window.choices()).includes(entry);
            await window.press('Escape');
            return offered;
        };
        assert.equal(await rehearsal(), false);
        const offer = await week(at, 'untrusted.rs');
        await window.press('Tab');
        await outcomesAre(at.hone, offer, [{ kind: 'accepted', evidence: 'document' }]);
        await window.trust();
        assert.equal(await rehearsal(), true);
    },

    async 'picking a model starts a daemon that serves it'(at) {
        const { pid } = at.hone.status().daemon;
        await at.window.command('Hone: Pick a Model');
        // The list is longer than the window shows.
        await at.window.filter('Hone: the model that completes', 'smollm2');
        await at.window.choose('smollm2-135m');
        await anotherDaemon(at, pid);
        assert.equal(at.hone.status().model.name, 'smollm2-135m');
    },

    async 'a first Tab in the file that the walkthrough opens'(at) {
        await at.window.command('Hone: Try It in a New File');
        await at.window.choose('Python');
        // The command asks for alternatives, of which one is on screen.
        const isShown = async () => (await at.window.ghost()).trim() === 'a - b';
        await eventually('the offer is on screen', isShown);
        at.hone.offerWasRead();
        await at.window.press('Tab');
        const accepted = () =>
            at.hone
                .offers()
                .filter(({ id }) => at.hone.outcomes(id).some(({ kind }) => kind === 'accepted'));
        await eventually('it is accepted', () => accepted().at(-1)?.shown.trim() === 'a - b');
    },

    async 'two windows share one daemon, and a window with two folders has offers in both'(at) {
        const { pid } = at.hone.status().daemon;
        const folders = ['first', 'other'].map((name) => at.folder(name, { [`${name}.rs`]: '' }));
        const workspace = join(at.folder('both', {}), 'both.code-workspace');
        writeFileSync(workspace, JSON.stringify({ folders: folders.map((path) => ({ path })) }));
        const window = await at.open({ workspace });
        await window.trust();
        await eventuallyAsked('two sessions', () => at.hone.status().daemon.sessions === 2);
        assert.equal(at.hone.status().daemon.pid, pid);
        for (const name of ['first', 'other']) {
            const offer = await week({ ...at, window }, `${name}.rs`);
            await window.press('Escape');
            await outcomesAre(at.hone, offer, [
                { kind: 'rejected_esc', evidence: 'client_notice' },
            ]);
        }
        await window.command('Hone: Rehearse on This Workspace');
        await eventually(
            'both folders are listed',
            async () => (await window.choices()).join() === 'first,other',
        );
        await window.press('Escape');
        await window.close();
        await eventuallyAsked('one session', () => at.hone.status().daemon.sessions === 1);
    },

    async 'the doctor finds nothing wrong'(at) {
        await at.window.command('Hone: Doctor');
        const frame = await at.window.webview('Socket');
        await at.window.shot('doctor');
        assert.deepEqual(await frame.locator('td.bad').allTextContents(), []);
        const noted = frame.locator('tr', { has: frame.locator('td.warning') }).locator('th');
        const unexpected = (name) => !OF_THE_MACHINE.includes(name);
        assert.deepEqual((await noted.allTextContents()).filter(unexpected), []);
        const name = frame.getByText('Labels', { exact: true });
        const labels = await frame.locator('tr', { has: name }).innerText();
        assert.equal(labels.includes('proposed API'), at.proposedApi);
    },
};

/**
 * These do not depend on the proposed API, so they are played without it alone. Learning comes
 * last, because it loads the machine.
 */
export const gatedStories = {
    ...manners.stories,
    ...neighbours.stories,
    ...nextEdit.stories,

    async 'the walkthrough ticks what is done, also what was done before it was opened'(at) {
        const { window } = at;
        const offer = await week(at, 'walkthrough.rs');
        await window.press('Tab');
        await outcomesAre(at.hone, offer, [{ kind: 'accepted', evidence: 'document' }]);
        await window.openWalkthrough();
        await window.areTicked('server', 'model', 'keys');
        await window.shot('walkthrough');
        await window.command('Hone: Learning Report');
        await window.webview(REPORT);
        await window.openWalkthrough();
        await window.areTicked('server', 'model', 'keys', 'report');
        await window.command('View: Close All Editors');
    },

    async 'learn now makes an adapter, and the status shows it'(at) {
        await at.window.command('Hone: Learn Now');
        await adapterServes(at.hone);
        await at.window.statusIs('ready');
        await at.window.command('Hone: Status');
        await at.window.page
            .locator('.notification-list-item', { hasText: 'adapter v1' })
            .waitFor();
        const offer = await week(at, 'learned.rs');
        await at.window.press('Tab');
        await outcomesAre(at.hone, offer, [{ kind: 'accepted', evidence: 'document' }]);
    },

    async 'the adapter is rolled back and chosen again'(at) {
        for (const [choice, version] of [
            ['the model alone', 0],
            ['v1', 1],
        ]) {
            await at.window.command('Hone: Roll Back the Adapter');
            await at.window.choose(choice);
            await eventuallyAsked(
                `${choice} serves`,
                () => at.hone.status().adapter.active === version,
            );
        }
    },

    async 'learning from the history of a folder that has none says so'(at) {
        const { window } = at;
        if (await window.isRestricted()) await window.trust();
        await window.command('Hone: Learn from This Workspace’s History');
        const all = { name: 'Learn from All Commits' };
        await window.page.locator('.monaco-dialog-box').getByRole('button', all).click();
        const said = window.notification('is not inside a git repository');
        // It was once behind the bell alone, where VS Code keeps what it hides.
        const inCentre = () => window.command('Notifications: Show Notifications');
        await said.waitFor({ timeout: 10_000 }).catch(inCentre);
        await said.waitFor();
    },

    async 'a rehearsal runs in a folder whose name a shell would run'(at) {
        const folder = at.folder("a'; touch ran; '", { 'x.rs': '' });
        const window = await at.open({ folder });
        await window.trust();
        await window.command('Hone: Rehearse on This Workspace');
        const terminal = window.page.locator('.xterm-rows', { hasText: /Press.Enter/ });
        await terminal.waitFor();
        await window.shot('rehearsal');
        assert.ok(!existsSync(join(folder, 'ran')));
        await window.close();
    },

    async 'learning is paused and continues'(at) {
        for (const [state, shown] of [
            ['off', 'paused'],
            ['idle', 'ready'],
        ]) {
            await at.window.command('Hone: Pause or Resume Learning');
            await eventuallyAsked(
                `learning is ${state}`,
                () => at.hone.status().learner.state === state,
            );
            await at.window.statusIs(shown);
        }
    },

    async 'the report shows what was accepted and learned'(at) {
        await at.window.command('Hone: Learning Report');
        const { accepted } = at.hone.status().episodes;
        // The page is made anew, in another frame, whenever the status line changes.
        const paper = await eventually('the page is whole', async () => {
            const frame = await at.window.webview(REPORT);
            const shown = [
                frame.locator('.key li', { hasText: new RegExp(`^accepted ${accepted}$`) }),
                frame.locator('td', { hasText: /^v1$/ }),
                frame.locator('.tree .now', { hasText: 'v1' }),
            ];
            const counts = await Promise.all(shown.map((it) => it.count())).catch(() => [0]);
            if (counts.includes(0)) return undefined;
            const paper = () => getComputedStyle(document.body).backgroundColor;
            return frame.evaluate(paper).catch(() => undefined);
        });
        assert.equal(paper, 'rgb(22, 22, 22)', 'it is dark in a dark theme');
        await at.window.command('Notifications: Clear All Notifications');
        await at.window.shot('report');
    },

    async 'a file is forgotten with the adapter that learned from it'(at) {
        const file = join(at.workspace, 'clock.rs');
        const known = () => at.hone.eventsInLog().filter((event) => event.path === file).length;
        assert.ok(known() > 0);
        await at.window.file('clock.rs');
        await at.window.command('Hone: Forget This File');
        await at.window.page
            .locator('.monaco-dialog-box')
            .getByRole('button', { name: 'Forget' })
            .click();
        await eventuallyAsked('nothing is known of it', () => known() === 0);
        await eventuallyAsked(
            'the model alone serves',
            () => at.hone.status().adapter.active === 0,
        );
        await at.window.page
            .locator('.notification-list-item', { hasText: 'v1 with them; the model alone serves' })
            .waitFor();
    },

    ...firstStart.stories,
};

/**
 * Nothing that was typed or offered is in a log, even at the trace level and with a trace asked
 * for.
 */
export function noCode(logs) {
    assert.ok(logs.length > 1, 'the extension and the daemon have logs');
    for (const file of logs) {
        const said = readFileSync(file, 'utf8');
        for (const word of ['Wednesday', 'Thursday', 'evening', 'one_of_many', 'check(three)']) {
            assert.ok(!said.includes(word), `${file}: holds ${word}`);
        }
    }
}

/** No offer of the whole run has two verdicts, unless the later one has stronger evidence. */
export function everyLabelOnce(hone) {
    const strength = ['clock', 'document', 'client_notice', 'command'];
    const known = new Map();
    for (const { event, id, outcome, evidence } of hone.events()) {
        if (event !== 'outcome') continue;
        const before = known.get(id);
        const stronger =
            before === undefined || strength.indexOf(evidence) > strength.indexOf(before.evidence);
        assert.ok(
            stronger && before?.kind !== outcome.kind,
            `${id}: ${outcome.kind} after ${before?.kind}`,
        );
        known.set(id, { kind: outcome.kind, evidence });
    }
    return known.size;
}
