import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOffer, reasonOf } from '../src/core/reason';

test('an answer says why it is as it is', () => {
    const off = { reason: 'switched_off', sentence: 'Off.', remedy: 'hone resume completions' };
    assert.deepEqual(reasonOf({ items: [], _hone: off }), off);
    assert.equal(isOffer(off), false);
    const shown = { reason: 'shown', sentence: 'An offer was shown.' };
    assert.deepEqual(reasonOf({ items: [{}], _hone: { ...shown, other: 1 } }), shown);
    assert.equal(isOffer(shown), true);
});

test('an older server gives no reason', () => {
    for (const answer of [null, undefined, [], { items: [] }, { items: [], _hone: {} }]) {
        assert.equal(reasonOf(answer), undefined);
    }
});
