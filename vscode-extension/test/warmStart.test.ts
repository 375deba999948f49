import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Rehearsal, rehearsal } from '../src/core/warmStart';

const at = (number: number, places: number) =>
    JSON.stringify({ arm: 'gate', number, of_arms: 3, places, of_places: 100 });

test('a rehearsal says how far it is over all of its arms', () => {
    const seen = new Rehearsal();
    assert.equal(seen.take(at(1, 0)), undefined);
    assert.deepEqual(seen.take(at(1, 50)), { increment: 16, message: '16 %' });
    assert.equal(seen.take(at(1, 50)), undefined);
    assert.deepEqual(seen.take(at(3, 100)), { increment: 84, message: '100 %' });
});

test('what was adopted is told in the words of hone', () => {
    const seen = new Rehearsal();
    for (const line of ['Typed 15 commits.', at(3, 100), 'adopted: the gate', 'no adapter: few']) {
        seen.take(line);
    }
    assert.equal(seen.adopted, 'adopted: the gate no adapter: few');
});

test('a line that is no progress is no error', () => {
    const seen = new Rehearsal();
    assert.equal(seen.take('{}'), undefined);
    assert.equal(seen.take(''), undefined);
});

test('the author is left out if all commits are wanted', () => {
    assert.ok(!rehearsal('/p', undefined, '/w').includes('--author'));
    const mine = rehearsal('/p', 'a@b.c', '/w');
    assert.equal(mine[mine.indexOf('--author') + 1], 'a@b.c');
});
