import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isEnabled, isLanguageOn, languageToggled, toggled } from '../src/core/languages';

test('a language has its own switch, other languages have *, and the default is on', () => {
    const found = { defaultValue: { '*': true }, globalValue: { '*': false, rust: true } };
    const are = (languages: string[]) => languages.map((name) => isLanguageOn(found, name));
    assert.deepEqual(are(['rust', 'go']), [true, false]);
    assert.ok(isLanguageOn({}, 'go') && isEnabled({}));
});

test('a workspace switches offers off, and never on', () => {
    const user = [true, false];
    const enabled = (workspaceValue: boolean) =>
        user.map((globalValue) => isEnabled({ globalValue, workspaceValue }));
    assert.deepEqual(enabled(true), [true, false]);
    assert.deepEqual(enabled(false), [false, false]);
    const globalValue = { '*': true, python: false };
    const isOn = (workspaceValue: Record<string, boolean>, name: string) =>
        isLanguageOn({ globalValue, workspaceValue }, name);
    assert.ok(!isOn({ python: true }, 'python') && !isOn({ '*': true }, 'python'));
    assert.ok(!isOn({ go: false }, 'go') && isOn({ go: false }, 'rust'));
});

test('offers are switched where that has an effect', () => {
    const on = { place: 'user', value: true };
    assert.deepEqual(toggled({}), [{ place: 'user', value: false }]);
    assert.deepEqual(toggled({ globalValue: false, workspaceValue: true }), [on]);
    assert.deepEqual(toggled({ workspaceValue: true }), [{ place: 'workspace', value: false }]);
    const both = [on, { place: 'workspace', value: true }];
    assert.deepEqual(toggled({ globalValue: false, workspaceValue: false }), both);
});

test('switching one language leaves the others', () => {
    const defaultValue = { '*': true };
    const user = { defaultValue, globalValue: { go: false } };
    assert.deepEqual(languageToggled(user, 'rust'), [
        { place: 'user', value: { '*': true, go: false, rust: false } },
    ]);
    const workspaceValue = { rust: false };
    assert.deepEqual(languageToggled({ ...user, workspaceValue }, 'rust'), [
        { place: 'workspace', value: { rust: true } },
    ]);
    assert.deepEqual(languageToggled({ ...user, workspaceValue }, 'go'), [
        { place: 'user', value: { '*': true, go: true } },
    ]);
});
