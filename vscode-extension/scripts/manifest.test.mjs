// What package.json names must exist: the editor says nothing of a link that leads nowhere.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const { commands, walkthroughs } = manifest.contributes;
const steps = walkthroughs.flatMap(({ steps }) => steps);
const known = new Set(commands.map(({ command }) => command));

test('every step of the walkthrough has its picture or page', () => {
    assert.ok(steps.length > 0);
    for (const { id, media } of steps) {
        const file = media.markdown ?? media.svg;
        assert.ok(existsSync(new URL(`../${file}`, import.meta.url)), `${id}: ${file}`);
        assert.ok(media.markdown ?? media.altText, `${id}: a picture has a text beside it`);
    }
});

test('every link of the walkthrough runs a command that exists', () => {
    const linksOf = ({ description }) => [...description.matchAll(/command:([\w.]+)/g)];
    const links = steps.flatMap(linksOf);
    assert.ok(links.length >= steps.length - 1, 'the steps have links');
    for (const [, command] of links) assert.ok(known.has(command), command);
});

test('a step is done by a command or a context of this extension', () => {
    const sources = ['statusbar.ts', 'extension.ts'].map((name) =>
        readFileSync(new URL(`../src/${name}`, import.meta.url), 'utf8'),
    );
    // The item of an offer carries this command, and the server runs it.
    const accept = 'hone.accept';
    for (const { id, completionEvents } of steps) {
        for (const event of completionEvents) {
            const [kind, name] = event.split(':');
            const exists =
                kind === 'onContext'
                    ? sources.some((text) => text.includes(`'${name}'`))
                    : known.has(name) || name === accept;
            assert.ok(exists, `${id}: ${event}`);
        }
    }
});
