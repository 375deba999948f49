// Folds the lines of `hone events --json` into the labels that the report plots.

import { BASE } from './adapters';

/** Labels that are kept. The report shows the recent course and is no archive. */
const LABEL_LIMIT = 5_000;

/** Kinds of evidence, weakest first. A later event replaces a label if its evidence is stronger. */
const EVIDENCE = ['clock', 'document', 'client_notice', 'command'];

const ACCEPTED = ['accepted', 'partly_accepted', 'typed_through'];
const REJECTED = ['rejected_esc', 'rejected_timeout', 'rejected_edit'];

export interface Label {
    atMs: number;
    accepted: boolean;
    /** The version of the adapter that served the offer. */
    adapter: number;
}

interface LogLine {
    event: string;
    id: string;
    at_ms: number;
    adapter?: number;
    outcome?: { kind: string };
    evidence?: string;
}

interface OfferOutcome {
    adapter: number;
    atMs: number;
    outcome?: string;
    strength: number;
}

export class History {
    private readonly outcomes = new Map<string, OfferOutcome>();

    /** Takes one line of the log. Events that this version does not know are ignored. */
    add(line: string): void {
        const event = JSON.parse(line) as LogLine;
        if (event.event === 'completion') {
            this.outcomes.set(event.id, {
                adapter: event.adapter ?? BASE,
                atMs: event.at_ms,
                strength: -1,
            });
            return;
        }
        const known = this.outcomes.get(event.id);
        if (event.event !== 'outcome' || !known || !event.outcome) return;
        const strength = EVIDENCE.indexOf(event.evidence ?? '');
        if (strength <= known.strength) return;
        this.outcomes.set(event.id, {
            ...known,
            atMs: event.at_ms,
            outcome: event.outcome.kind,
            strength,
        });
    }

    /** The judged offers, oldest verdict first. Offers without a verdict are left out. */
    labels(): Label[] {
        const judged = [...this.outcomes.values()].flatMap(({ outcome, atMs, adapter }) => {
            const accepted = ACCEPTED.includes(outcome ?? '');
            return accepted || REJECTED.includes(outcome ?? '')
                ? [{ atMs, accepted, adapter }]
                : [];
        });
        return judged.sort((a, b) => a.atMs - b.atMs).slice(-LABEL_LIMIT);
    }
}

/** For each label, the share that was accepted among the last `width` labels. */
export function acceptRates(labels: readonly Label[], width: number): number[] {
    let accepted = 0;
    return labels.map((label, at) => {
        const leaving = labels[at - width];
        accepted += Number(label.accepted) - Number(leaving?.accepted ?? false);
        return accepted / Math.min(at + 1, width);
    });
}

/** After how many labels each adapter began to serve. */
export function adapterSteps(labels: readonly Label[]): { after: number; version: number }[] {
    const steps: { after: number; version: number }[] = [];
    for (const [after, { adapter: version }] of labels.entries()) {
        // A label may come after a swap although its offer was served before the swap.
        if (version > (steps.at(-1)?.version ?? -1)) steps.push({ after, version });
    }
    return steps;
}
