import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOn, turned } from '../src/core/languages';

test('a language has its own switch, other languages have *, and the default is on', () => {
    const switches = { '*': false, rust: true };
    assert.deepEqual(
        [isOn(switches, 'rust'), isOn(switches, 'go'), isOn({}, 'go')],
        [true, false, true],
    );
});

test('switching one language leaves the others', () => {
    assert.deepEqual(turned({ '*': true, go: false }, 'rust'), {
        '*': true,
        go: false,
        rust: false,
    });
    assert.deepEqual(turned({ '*': true, rust: false }, 'rust'), { '*': true, rust: true });
});
