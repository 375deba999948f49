import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOn, turned } from '../src/core/languages';

test('a language has its own switch, the others have *, and on is what nobody set', () => {
    const switches = { '*': false, rust: true };
    assert.deepEqual([isOn(switches, 'rust'), isOn(switches, 'go'), isOn({}, 'go')], [true, false, true]);
});

test('turning one over leaves the others', () => {
    assert.deepEqual(turned({ '*': true, go: false }, 'rust'), { '*': true, go: false, rust: false });
    assert.deepEqual(turned({ '*': true, rust: false }, 'rust'), { '*': true, rust: true });
});
