// Decides when to restart a server that died: soon at first, then later each time, then not at all.

const FIRST_DELAY_MS = 500;
const DELAY_FACTOR = 2;
/** After more deaths than this within the window, another start will not help. */
const DEATH_LIMIT = 5;
const DEATH_WINDOW_MS = 180_000;

export class Backoff {
    private deaths: number[] = [];

    /** Records that a server died. Returns how long to wait, or `undefined` to give up. */
    died(nowMs: number): number | undefined {
        this.deaths = this.deaths.filter((at) => nowMs - at < DEATH_WINDOW_MS);
        this.deaths.push(nowMs);
        if (this.deaths.length > DEATH_LIMIT) return undefined;
        return FIRST_DELAY_MS * DELAY_FACTOR ** (this.deaths.length - 1);
    }

    /** Forgets earlier deaths, because the user asked for a start. */
    reset(): void {
        this.deaths = [];
    }
}
