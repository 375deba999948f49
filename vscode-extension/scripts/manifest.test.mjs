// What package.json names must exist: the editor says nothing of a link that leads nowhere.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const { commands, keybindings, menus, walkthroughs } = manifest.contributes;
const steps = walkthroughs.flatMap(({ steps }) => steps);
const known = new Set(commands.map(({ command }) => command));
const isNeverInPalette = (name) =>
    menus.commandPalette.some(({ command, when }) => command === name && when === 'false');

function source(name) {
    return readFileSync(new URL(`../src/${name}`, import.meta.url), 'utf8');
}

test('every step of the walkthrough has its picture or page', () => {
    assert.ok(steps.length > 0);
    for (const { id, media } of steps) {
        const file = media.markdown ?? media.svg;
        assert.ok(existsSync(new URL(`../${file}`, import.meta.url)), `${id}: ${file}`);
        assert.ok(media.markdown ?? media.altText, `${id}: a picture has a text next to it`);
    }
});

test('the icon is a picture as the Marketplace wants it', () => {
    const icon = readFileSync(new URL(`../${manifest.icon}`, import.meta.url));
    assert.equal(icon.toString('latin1', 1, 4), 'PNG');
    assert.deepEqual([icon.readUInt32BE(16), icon.readUInt32BE(20)], [128, 128]);
});

test('every link of the walkthrough runs a command that exists', () => {
    const linksOf = ({ description }) => [...description.matchAll(/command:([\w.]+)/g)];
    const links = steps.flatMap(linksOf);
    assert.ok(links.length >= steps.length - 1, 'the steps have links');
    for (const [, command] of links) assert.ok(known.has(command), command);
});

test('no command of the palette needs the focus of the editor, which the palette has', () => {
    for (const { command, enablement } of commands) {
        if (!isNeverInPalette(command)) assert.doesNotMatch(enablement ?? '', /Focus/, command);
    }
});

test('what the palette has, the menu in the status bar has too', () => {
    // Each has a place of its own: the item itself, the walkthrough, and Escape.
    const elsewhere = ['hone.menu', 'hone.install', 'hone.dismissEdit'];
    const menu = source('core/menu.ts');
    for (const { command } of commands) {
        if (isNeverInPalette(command) || elsewhere.includes(command)) continue;
        assert.ok(menu.includes(`'${command.replace('hone.', '')}'`), command);
    }
});

test('a context of this extension is one that it sets', () => {
    const files = readdirSync(new URL('../src', import.meta.url), { withFileTypes: true });
    const sources = files.filter((entry) => entry.isFile()).map(({ name }) => source(name));
    const clauses = [...commands, ...keybindings, ...menus.commandPalette].flatMap(
        ({ when, enablement }) => [when ?? '', enablement ?? ''],
    );
    const contexts = new Set(clauses.flatMap((clause) => clause.match(/hone\.\w+/g) ?? []));
    assert.ok(contexts.size > 0);
    for (const context of contexts) {
        assert.ok(
            sources.some((text) => text.includes(`'${context}'`)),
            context,
        );
    }
});

// With Option, a key of a Mac's keyboard writes a character, such as the `ń` of a Polish one.
test('no key takes a character of a Mac, except while an offer is there as VS Code does', () => {
    for (const { command, key, mac, when } of keybindings) {
        const takes = /^(shift\+)?alt\+(shift\+)?.$/.test(mac ?? key);
        assert.ok(!takes || when.includes('inlineSuggestionVisible'), `${command}: ${mac ?? key}`);
    }
});

/**
 * The places that start a program, and by which functions. Each gives a full path, which
 * `core/search.ts` found or the user named, and a list of arguments that no shell reads. A new
 * place needs the same.
 */
const STARTS = {
    'client.ts': ['spawn'],
    'commands.ts': ['createTerminal'],
    'core/program.ts': ['execFile', 'spawn'],
};

const STARTERS = [
    ...['spawn', 'spawnSync', 'execFile', 'execFileSync', 'exec', 'execSync', 'fork'],
    ...['createTerminal', 'sendText', 'executeTask', 'openExternal'],
    ...['ShellExecution', 'ProcessExecution'],
];

/** A regular expression has a function `exec` too. */
const STARTER = new RegExp(`(?<!\\/[a-z]*\\.)\\b(${STARTERS.join('|')})\\(`, 'g');

test('only known places start a program, and none through a shell', () => {
    const folder = new URL('../src/', import.meta.url);
    const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.ts'));
    const starts = {};
    for (const name of names) {
        const text = source(name);
        assert.doesNotMatch(text, /\bshell: /, name);
        const found = text
            .split('\n')
            .filter((line) => !/^\s*(\/\/|\*)/.test(line))
            .flatMap((line) => [...line.matchAll(STARTER)])
            .map(([, starter]) => starter);
        if (found.length > 0) starts[name] = [...new Set(found)].sort();
    }
    assert.deepEqual(starts, STARTS);
});

test('a workspace switches offers off, and nothing else', () => {
    const all = manifest.contributes.configuration.flatMap(({ properties }) =>
        Object.entries(properties),
    );
    const ofWorkspace = all.filter(([, { scope }]) => scope !== 'machine').map(([name]) => name);
    assert.deepEqual(ofWorkspace, ['hone.enabled', 'hone.languages']);
    const { supported, restrictedConfigurations } = manifest.capabilities.untrustedWorkspaces;
    assert.equal(supported, 'limited');
    assert.ok(restrictedConfigurations.includes('hone.path'));
});

test('notifications are shown by say.ts alone, which makes no links of names', () => {
    const files = readdirSync(new URL('../src', import.meta.url), { withFileTypes: true });
    const names = files.filter((entry) => entry.isFile()).map(({ name }) => name);
    const shows = /show(Information|Warning|Error)Message/;
    assert.deepEqual(
        names.filter((name) => shows.test(source(name))),
        ['say.ts'],
    );
});
