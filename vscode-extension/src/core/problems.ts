// Decides which problem of the server is news, and what the message about it says.

import type { ServerState } from './status';

/** A server that ran for this long was well. What is wrong after that is news. */
const WELL_MS = 180_000;

const AGAIN =
    'Hone tries again when this window gets the focus, and at once at `Hone: Restart Server`.';

/**
 * Each problem is told in one message and not at every try. It is told again after the user asked
 * for an end or a new start, or after the server was well.
 */
export class Problems {
    private told: string | undefined;
    private runsSinceMs: number | undefined;

    /** The problem of this state if it is news, else undefined. Every state must be passed. */
    news(state: ServerState, nowMs: number): string | undefined {
        const { runsSinceMs } = this;
        this.runsSinceMs = state.kind === 'running' ? nowMs : undefined;
        const wasWell = runsSinceMs !== undefined && nowMs - runsSinceMs >= WELL_MS;
        if (wasWell || state.kind === 'stopped') this.told = undefined;
        if (state.kind !== 'failed' || state.problem === this.told) return undefined;
        this.told = state.problem;
        return state.problem;
    }
}

export function problemMessage(problem: string): string {
    return `Hone: ${problem.replace(/\.$/, '')}. ${AGAIN}`;
}
