// picture.mjs SCENE TARGET: makes a moving picture, as `cargo xtask picture` does.
//
// It is a real VS Code with a real server, which serves the default model. A scene of `scenes` says
// what somebody types, and with which of Hone's settings.

import { mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { CodeServer } from './codeserver.mjs';
import { Hone, eventually } from './hone.mjs';
import { Recorder, writeWebp } from './recorder.mjs';
import * as completions from './scenes/completions.mjs';
import * as nextEdit from './scenes/next-edit.mjs';
import { KEY_SHOWN_MS } from './scenes/pace.mjs';
import { folders, packaged, removed, required } from './setup.mjs';
import { Window, openBrowser } from './window.mjs';

const SCENES = { completions, 'next-edit': nextEdit };
const PORT = 18_099;
const READY_LIMIT_MS = 120_000;
/** The picture is 960 pixels wide. Everything in it is one and a half times as large as usual. */
const SCALE = 1.5;
/** Exactly this many lines fit in, so that none is cut when the editor scrolls. */
const LINES = 19;
const LINE_PX = 19;
const REST_MS = 6_000;

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
    'editor.selectionHighlight': false,
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

const [name, path] = process.argv.slice(2);
const scene = SCENES[name];
if (!scene || !path) throw new Error(`name a scene (${Object.keys(SCENES).join(', ')}) and a file`);
const target = resolve(path);
const hone = new Hone(
    required('HONE_BIN'),
    required('HONE_TEST_MODELS'),
    undefined,
    scene.configuration,
);
const profile = mkdtempSync(join(tmpdir(), 'hone-vscode-'));
const workspace = folders(profile)('shop', scene.files);
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
    const screen = {
        viewport: { width: 640, height: 71 + (scene.lines ?? LINES) * LINE_PX },
        deviceScaleFactor: SCALE,
    };
    const window = await Window.open(browser, PORT, { folder: workspace }, profile, screen);
    await prepare(window);
    const recorder = await Recorder.start(window.page);
    await scene.play({ window, hone });
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
    await window.statusIs('ready', READY_LIMIT_MS);
    await scene.before?.({ window, hone });
    await window.file(scene.file);
    await scene.opened?.({ window, hone });
    for (const id of HIDDEN) await window.hideStatus(id);
    await window.command('View: Close Primary Side Bar');
    await window.command('Developer: Toggle Screencast Mode');
    await eventually('the editor has the keys', () =>
        window.page.evaluate(() => document.activeElement?.closest('.editor-instance') !== null),
    );
    // Meanwhile the server reads the file, so that its first offer comes as soon as the others.
    await window.pause(REST_MS);
}
