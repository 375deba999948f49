import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backoff } from '../src/core/backoff';

test('each death in a row waits longer, and after the sixth there is no restart', () => {
    const backoff = new Backoff();
    const delays = Array.from({ length: 6 }, (_, at) => backoff.died(at * 1_000));
    assert.deepEqual(delays, [500, 1_000, 2_000, 4_000, 8_000, undefined]);
    backoff.reset();
    assert.equal(backoff.died(6_000), 500);
});

test('a death long after the others counts as the first one', () => {
    const backoff = new Backoff();
    backoff.died(0);
    backoff.died(1_000);
    assert.equal(backoff.died(200_000), 500);
});
