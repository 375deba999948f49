import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HistoryLearning, learnHistory } from '../src/core/warmStart';

const at = (percent: number, doing: string) => JSON.stringify({ percent, doing });

test('a progress bar only goes forward, and says what is done', () => {
    const seen = new HistoryLearning();
    const steps = [at(2, 'learning'), at(40, 'learning'), at(40, 'checking'), at(100, 'checking')];
    assert.deepEqual(
        steps.map((line) => seen.take(line)),
        [
            { increment: 2, message: '2 %, learning' },
            { increment: 38, message: '40 %, learning' },
            { increment: 0, message: '40 %, checking' },
            { increment: 60, message: '100 %, checking' },
        ],
    );
});

test('what came of it is told in the words of hone', () => {
    const seen = new HistoryLearning();
    for (const line of [at(100, 'checking'), 'adopted: v1 serves from now on.', '']) {
        seen.take(line);
    }
    assert.equal(seen.outcome, 'adopted: v1 serves from now on.');
});

test('a line that is no progress is no error', () => {
    const seen = new HistoryLearning();
    assert.equal(seen.take('{}'), undefined);
    assert.equal(seen.take(''), undefined);
});

test('the author is left out if all commits are wanted', () => {
    assert.ok(!learnHistory('/p', undefined).includes('--author'));
    const mine = learnHistory('/p', 'a@b.c');
    assert.equal(mine[mine.indexOf('--author') + 1], 'a@b.c');
});
