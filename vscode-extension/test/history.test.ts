import assert from 'node:assert/strict';
import { test } from 'node:test';
import { History, acceptRates, adapterSteps, type Label } from '../src/core/history';

function history(...events: object[]): Label[] {
    const log = new History();
    for (const [at_ms, event] of events.entries()) {
        log.add(JSON.stringify({ seq: at_ms, at_ms, ...event }));
    }
    return log.labels();
}

const offer = (id: string, adapter = 0): object => ({ event: 'completion', id, adapter });
const outcome = (id: string, kind: string, evidence: string): object => ({
    event: 'outcome',
    id,
    outcome: { kind },
    evidence,
});

test('judged offers are labels, in the order of their verdicts', () => {
    const labels = history(
        offer('a'),
        offer('b', 2),
        { event: 'shown', id: 'a' },
        outcome('b', 'typed_through', 'document'),
        outcome('a', 'rejected_esc', 'client_notice'),
        offer('open'),
        offer('c'),
        outcome('c', 'superseded', 'document'),
        { event: 'of a later version', id: 'a' },
    );
    assert.deepEqual(labels, [
        { atMs: 3, accepted: true, adapter: 2 },
        { atMs: 4, accepted: false, adapter: 0 },
    ]);
});

test('stronger evidence replaces a label and weaker does not', () => {
    const rejected = outcome('a', 'rejected_timeout', 'clock');
    const accepted = outcome('a', 'accepted', 'command');
    assert.deepEqual(
        history(offer('a'), rejected, accepted).map((label) => label.accepted),
        [true],
    );
    assert.deepEqual(
        history(offer('a'), accepted, rejected).map((label) => label.accepted),
        [true],
    );
});

function labels(...accepted: number[]): Label[] {
    return accepted.map((value, at) => ({ atMs: at, accepted: value === 1, adapter: 0 }));
}

test('the rate is the share among the last few', () => {
    assert.deepEqual(acceptRates(labels(1, 0, 0, 1, 1), 2), [1, 0.5, 0, 0.5, 1]);
    assert.deepEqual(acceptRates([], 2), []);
});

test('an adapter begins at its first label, and a late label of its parent is no step back', () => {
    const served = [0, 0, 1, 0, 1, 3].map((adapter, at) => ({ atMs: at, accepted: true, adapter }));
    assert.deepEqual(adapterSteps(served), [
        { after: 0, version: 0 },
        { after: 2, version: 1 },
        { after: 5, version: 3 },
    ]);
});
