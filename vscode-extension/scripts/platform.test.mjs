import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placeOf } from './platform.mjs';

test('the programs lie where the extension looks for them, by process.platform and arch', () => {
    assert.equal(placeOf('linux-arm64'), 'linux-arm64');
    assert.equal(placeOf('win32-x64'), 'win32-x64');
    assert.equal(placeOf('alpine-x64'), 'linux-x64');
});
