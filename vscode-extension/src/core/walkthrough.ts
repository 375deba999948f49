// The ticks of the walkthrough. VS Code ticks a step when a context becomes true, and forgets a
// context that was true already when it read the steps, which may be long after Hone has started.
// So each step waits for one of several values of its context, and the value changes when a page is
// opened that may be the walkthrough.

export const STEPS = ['server', 'model', 'keys', 'history', 'report'] as const;

export type Step = (typeof STEPS)[number];

/** The values that a context takes, one after the other: at once, and when pages are opened. */
const VALUES = [1, 2, 3] as const;

export function contextOf(step: Step): string {
    return `hone.done.${step}`;
}

/** The events that tick a step, for the manifest. */
export function completionEvents(step: Step): string[] {
    return VALUES.map((value) => `onContext:${contextOf(step)} == ${value}`);
}

export class Ticks {
    private readonly values = new Map<Step, number>();

    constructor(private readonly set: (context: string, value: number) => void) {}

    done(step: Step): void {
        if (!this.values.has(step)) this.turn(step, 0);
    }

    /** Is called when a page was opened that may be the walkthrough. */
    pageOpened(): void {
        for (const [step, at] of this.values) this.turn(step, at === 1 ? 2 : 1);
    }

    private turn(step: Step, at: number): void {
        this.values.set(step, at);
        this.set(contextOf(step), VALUES[at]!);
    }
}
