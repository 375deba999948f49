// What the server's status says in a line: the verdicts so far, and what the learner does.

import type { Status } from './protocol';

/** Offers that were accepted, whole or in part, and offers that were judged at all. */
export function acceptedOfJudged({ episodes }: Status): { accepted: number; judged: number } {
    const count = (outcome: string): number => episodes[outcome] ?? 0;
    return {
        accepted: count('accepted') + count('partly_accepted') + count('typed_through'),
        judged: count('total') - count('superseded') - count('unseen') - count('unlabelled'),
    };
}

export function learnerLine({ learner }: Status): string {
    const rests = learner.state === 'idle' || learner.state === 'waiting';
    if (rests && learner.held_back) return `Labels wait: ${learner.held_back}`;
    switch (learner.state) {
        case 'off':
            return 'Learning is paused';
        case 'idle':
            return `${learner.waiting} of ${learner.batch} labels until the next update`;
        case 'waiting':
            return 'An update is about to start';
        case 'training':
            return `Learning now: ${learner.progress ?? 'starting'}`;
        case 'backoff':
            return 'Waiting after a failure';
    }
}
