import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withTimes } from './recorder.mjs';

const frames = (...all) => all.map(([atMs, drawn]) => ({ atMs, png: Buffer.from(drawn) }));
const told = (shown) => shown.map(({ png, ms }) => `${png} ${ms}`);

test('each frame stands until the next one, and the last one until the end', () => {
    assert.deepEqual(told(withTimes(frames([1000, 'a'], [1100, 'b'], [1350, 'c']), 2000)), [
        'a 100',
        'b 250',
        'c 650',
    ]);
});

test('a frame that repeats the one before lengthens it', () => {
    assert.deepEqual(told(withTimes(frames([1000, 'a'], [1100, 'a'], [1200, 'b']), 1300)), [
        'a 200',
        'b 100',
    ]);
});

test('a frame that is too short to be seen gives its place to the next one', () => {
    assert.deepEqual(told(withTimes(frames([1000, 'a'], [1100, 'b'], [1110, 'c']), 1300)), [
        'a 100',
        'c 200',
    ]);
});
