// picture.mjs TARGET: makes the README's moving picture, as `cargo xtask picture` does.
//
// It is a real VS Code with a real server, which serves the default model in its default settings.
// Somebody types, accepts three offers and rejects one. Nothing is cut and nothing is arranged but
// this: the same person has typed another file before, with twelve labels, so that the four of the
// picture are enough for an update.

import { mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { CodeServer } from './codeserver.mjs';
import { Hone, eventually } from './hone.mjs';
import { Recorder, writeWebp } from './recorder.mjs';
import { folders, packaged, removed, required } from './setup.mjs';
import { Window, openBrowser } from './window.mjs';

const PORT = 18_099;
const READY_LIMIT_MS = 120_000;
/** The picture is 960 pixels wide. Everything in it is one and a half times as large as usual. */
const SCALE = 1.5;
/** Exactly nineteen lines fit in, so that none is cut when the editor scrolls. */
const LINE_PX = 19;
const SCREEN = { viewport: { width: 640, height: 71 + 19 * LINE_PX }, deviceScaleFactor: SCALE };
const REST_MS = 6_000;
/** How fast somebody types, and how long they look at an offer before they decide. */
const KEY_MS = 75;
const READ_MS = 1_000;
/** How long VS Code shows that key. Meanwhile nothing else is typed, so that it goes away. */
const KEY_SHOWN_MS = 600;
/** How long the last frame stands. */
const END_MS = 3_000;
/** How long an offer may take. Where the model is not sure enough, there is none. */
const OFFER_LIMIT_MS = 2_500;
/** How long the server may take to log what became of an offer. */
const LABEL_MS = 300;
/** The labels of the picture itself: three accepted offers and a rejected one. */
const LABELS = 4;

const BEFORE = 'stock.py';
const FILE = 'basket.py';
const ITEM = `from dataclasses import dataclass


@dataclass
class Item:
    name: str
    price: float
    quantity: int


`;
const FILES = {
    [BEFORE]: ITEM,
    [FILE]: `${ITEM}def cheapest(items):\n    return min(items, key=lambda item: item.price)\n\n\n`,
};

/** What was typed before, and at `|` somebody waits for an offer. */
const STOCK = [
    'def total(|items):',
    '    return sum(|item.price * item.quantity for item in items)',
    'def count(|items):',
    '    return sum(|item.quantity for item in items)',
    'def names(|items):',
    '    return [|item.name for item in items]',
    'def in_stock(|items):',
    '    return [|item for item in items if item.quantity > 0]',
    'def sold_out(|items):',
    '    return [|item for item in items if item.quantity == 0]',
    'def by_name(|items):',
    '    return sorted(|items, key=lambda item: item.name)',
    'def by_price(|items):',
    '    return sorted(|items, key=lambda item: item.price)',
    'def by_quantity(|items):',
    '    return sorted(|items, key=lambda item: item.quantity)',
    'def prices(|items):',
    '    return {|item.name: item.price for item in items}',
    'def average_price(|items):',
    '    return total(|items) / count(items)',
];

/** Everything is out of the way that is not the editor. */
const CALM = {
    'breadcrumbs.enabled': false,
    'editor.autoClosingBrackets': 'never',
    'editor.cursorBlinking': 'solid',
    'editor.cursorSurroundingLines': 3,
    'editor.fontSize': 13,
    'editor.guides.indentation': false,
    'editor.hideCursorInOverviewRuler': true,
    'editor.lineHeight': LINE_PX,
    'editor.lightbulb.enabled': 'off',
    'editor.matchBrackets': 'never',
    'editor.occurrencesHighlight': 'off',
    'editor.overviewRulerBorder': false,
    'editor.renderLineHighlight': 'none',
    'editor.scrollbar.horizontal': 'hidden',
    'editor.scrollbar.vertical': 'hidden',
    'editor.stickyScroll.enabled': false,
    'editor.wordBasedSuggestions': 'off',
    'screencastMode.fontSize': 22,
    'screencastMode.keyboardOptions': {
        showKeys: false,
        showKeybindings: true,
        showCommands: false,
        showCommandGroups: false,
        showSingleEditorCursorMoves: false,
    },
    'screencastMode.keyboardOverlayTimeout': KEY_SHOWN_MS,
    'screencastMode.verticalOffset': 6,
    'workbench.activityBar.location': 'hidden',
    'workbench.commandPalette.history': 0,
    'workbench.editor.editorActionsLocation': 'hidden',
    'workbench.layoutControl.enabled': false,
    'workbench.reduceMotion': 'on',
};
/** Items of the status bar that say nothing about one small file. */
const HIDDEN = [
    'status.host',
    'status.problems',
    'status.forwardedPorts',
    'status.workbench.keyboardLayout',
    'status.editor.eol',
    'status.editor.encoding',
    'status.editor.indentation',
];

const target = resolve(process.argv[2]);
const hone = new Hone(required('HONE_BIN'), required('HONE_TEST_MODELS'), undefined, '');
const profile = mkdtempSync(join(tmpdir(), 'hone-vscode-'));
const workspace = folders(profile)('shop', FILES);
const server = new CodeServer(
    required('CODE_SERVER'),
    profile,
    PORT,
    { 'hone.path': hone.program },
    hone.environment,
);
server.setUser(CALM);
let browser;
try {
    server.installExtension(packaged(false));
    await server.start();
    browser = await openBrowser(SCALE);
    const window = await Window.open(browser, PORT, { folder: workspace }, profile, SCREEN);
    await prepare(window);
    const recorder = await Recorder.start(window.page);
    await play(window);
    const frames = await recorder.stop();
    writeWebp(frames, process.env.E2E_FRAMES ?? join(profile, 'frames'), target);
    const seconds = frames.reduce((sum, { ms }) => sum + ms, 0) / 1000;
    const kib = Math.round(statSync(target).size / 1024);
    console.log(`${target}: ${frames.length} frames, ${seconds.toFixed(1)} s, ${kib} KiB`);
} finally {
    await browser?.close();
    await server.stop();
    hone.dispose();
    await removed(profile);
}

async function prepare(window) {
    await window.trust();
    await window.file(BEFORE);
    await window.statusIs('ready', READY_LIMIT_MS);
    await typeBefore(window);
    await window.press('Control+s');
    await window.command('View: Close Editor');
    await window.file(FILE);
    for (const id of HIDDEN) await window.hideStatus(id);
    await window.command('View: Close Primary Side Bar');
    await window.command('Developer: Toggle Screencast Mode');
    await eventually('the editor has the keys', () =>
        window.page.evaluate(() => document.activeElement?.closest('.editor-instance') !== null),
    );
    // Meanwhile the server reads the file, so that its first offer comes as soon as the others.
    await window.pause(REST_MS);
}

/** Types lines until as many labels wait as the picture's own need for an update. */
async function typeBefore(window) {
    const { batch } = hone.status().learner;
    const waiting = () => hone.status().learner.waiting;
    for (const line of STOCK) {
        const [typed, rest] = line.trimStart().split('|');
        await window.type(typed, KEY_MS);
        const ghost = await offerOrNone(window);
        await window.pause(ghost ? READ_MS : 0);
        if (ghost && ghost === rest) {
            await window.press('Tab');
        } else {
            await window.press('Escape');
            await window.type(rest, KEY_MS);
        }
        await window.pause(LABEL_MS);
        if (waiting() >= batch - LABELS) return;
        await nextLine(window, line.startsWith(' '));
    }
    throw new Error(`only ${waiting()} labels came of ${BEFORE}, not ${batch - LABELS}`);
}

/** The text of the offer, or '' if none comes. */
async function offerOrNone(window) {
    for (const end = Date.now() + OFFER_LIMIT_MS; Date.now() < end; await window.pause(50)) {
        const ghost = await window.ghost();
        if (ghost) return ghost;
    }
    return '';
}

/** The editor indents a new line as the last one. After a function, two empty ones come first. */
async function nextLine(window, endsFunction) {
    await window.type(endsFunction ? '\n\n\n' : '\n', KEY_MS);
    if (endsFunction) await window.press('Backspace');
}

async function play(window) {
    await window.pause(1_000);
    await window.type('def m', KEY_MS);
    await answer(window, 'Tab');
    await nextLine(window, false);
    await answer(window, 'Tab');
    await nextLine(window, true);
    await window.type('def f', KEY_MS);
    await answer(window, 'Escape');
    await window.type('ind(items, name):', KEY_MS);
    await nextLine(window, false);
    await answer(window, 'Tab');
    // This was the sixteenth label. The update begins by itself.
    await eventually('it learns', () => hone.status().learner.state === 'training');
    await window.pause(600);
    await window.press('F1');
    await window.pause(300);
    await window.type('hone status', KEY_MS);
    await window.pause(500);
    // The entry is clicked, because screencast mode puts a wrong name on the Enter of a list.
    await window.choose('Hone: Status');
    await window.page.locator('.notification-list-item', { hasText: 'judged offers' }).waitFor();
    await window.pause(END_MS);
}

/** Waits for an offer, reads it, and answers it with a key. */
async function answer(window, key) {
    await eventually('an offer', () => window.ghost());
    await window.pause(READ_MS);
    await window.press(key);
    await window.noGhost();
    await window.pause(KEY_SHOWN_MS);
}
