// When to start a server again that died: soon, then later and later, then not at all.

const FIRST_DELAY_MS = 500;
const DELAY_FACTOR = 2;
/** Deaths within the window after which something is wrong that another start will not mend. */
const DEATH_LIMIT = 5;
const DEATH_WINDOW_MS = 180_000;

export class Backoff {
    private deaths: number[] = [];

    /** A server died: how long to wait, or `undefined` to give up. */
    died(nowMs: number): number | undefined {
        this.deaths = this.deaths.filter((at) => nowMs - at < DEATH_WINDOW_MS);
        this.deaths.push(nowMs);
        if (this.deaths.length > DEATH_LIMIT) return undefined;
        return FIRST_DELAY_MS * DELAY_FACTOR ** (this.deaths.length - 1);
    }

    /** The user asked for a start: earlier deaths no longer count. */
    reset(): void {
        this.deaths = [];
    }
}
