import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOT_FOUND } from '../src/core/locate';
import { mainMenu, moreMenu, type Menu, type MenuInputs } from '../src/core/menu';

const READY: MenuInputs = {
    server: { kind: 'running' },
    enabled: true,
    eagerness: 'balanced',
    language: 'rust',
    languageOn: true,
    hasFolder: true,
    isRecording: false,
};
const MISSING = '/h/models/m.gguf is missing; run `hone model pull m`';

function does({ groups }: Menu): string[] {
    return groups.flat().map((entry) => entry.does);
}

function failed(problem: string): Menu {
    return mainMenu({ ...READY, server: { kind: 'failed', problem } });
}

test('while something is missing, the menu begins with what to do about it', () => {
    const others = ['doctor', 'restart', 'output'];
    assert.deepEqual(does(failed(NOT_FOUND)), ['install', ...others]);
    assert.deepEqual(does(failed(MISSING)), ['model', ...others]);
    const [model, program] = [failed(MISSING).title, failed(NOT_FOUND).title];
    assert.equal(model, 'Hone: A model is needed');
    assert.equal(program, 'Hone: The program hone is not installed yet');
});

test('where the server cannot run, the menu has nothing that needs it', () => {
    const damaged = failed('/h/models/m.gguf is damaged');
    assert.deepEqual(does(damaged), ['doctor', 'restart', 'model', 'output']);
    assert.equal(damaged.title, '/h/models/m.gguf is damaged');
});

test('the menu is short, and the other commands are behind its last entry', () => {
    const [main, more] = [does(mainMenu(READY)), does(moreMenu(READY))];
    assert.ok(main.length <= 11, `${main}`);
    assert.equal(main.at(-1), 'more');
    assert.deepEqual(
        main.filter((name) => more.includes(name)),
        [],
    );
});

test('the menu leaves out what has no effect now', () => {
    const starting: MenuInputs = {
        ...READY,
        server: { kind: 'starting' },
        language: undefined,
        hasFolder: false,
    };
    assert.deepEqual(does(mainMenu(starting)), ['toggle', 'report', 'model', 'doctor', 'more']);
    assert.deepEqual(does(moreMenu(starting)), ['output', 'restart']);
    const off = does(mainMenu({ ...READY, enabled: false }));
    assert.ok(!off.includes('toggleLanguage'));
});

test('no two entries have the same icon, and none has a word of ours', () => {
    const menus = [mainMenu(READY), moreMenu(READY), failed(NOT_FOUND)];
    const entries = new Map(
        menus.flatMap(({ groups }) => groups.flat()).map((entry) => [entry.does, entry.label]),
    );
    const icons = [...entries.values()].map((label) => /^\$\(([\w-]+)\) /.exec(label)?.[1]);
    assert.ok(!icons.includes(undefined));
    assert.equal(new Set(icons).size, icons.length, `${icons}`);
    for (const label of entries.values()) assert.doesNotMatch(label, /adapter|label|episode/i);
});

test('a recording can be begun or ended, whichever has an effect', () => {
    const names = (isRecording: boolean): string[] =>
        does(moreMenu({ ...READY, isRecording })).filter((name) => /record/i.test(name));
    assert.deepEqual(names(false), ['record']);
    assert.deepEqual(names(true), ['stopRecording']);
});
