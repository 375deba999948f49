// The learning report: the outcomes of the offers, and what was learned from them.

import { BASE } from './adapters';
import { acceptRates, adapterSteps, type Label } from './history';
import { escape, page } from './html';
import type { Status } from './protocol';

/** How many labels one point of the accept rate averages over. */
const RATE_WIDTH = 20;

/** The size of a plot in its own units, which the page scales. */
const PLOT = { width: 640, height: 180, left: 44, right: 12, top: 12, bottom: 26 };

const OUTCOMES: [key: string, name: string][] = [
    ['accepted', 'Accepted'],
    ['partly_accepted', 'Accepted in part'],
    ['typed_through', 'Typed by hand'],
    ['rejected_esc', 'Dismissed with Escape'],
    ['rejected_edit', 'Typed over'],
    ['rejected_timeout', 'Left standing'],
    ['superseded', 'Left without a verdict'],
    ['unseen', 'Gone before it was seen'],
    ['unlabelled', 'Not decided yet'],
];

export function reportPage(status: Status, labels: readonly Label[]): string {
    return page(
        'Hone: learning report',
        [summary(status, labels), plots(labels), outcomes(status)].join('\n'),
    );
}

/** Offers that were accepted, whole or in part, and offers that were judged at all. */
export function acceptedOfJudged({ episodes }: Status): { accepted: number; judged: number } {
    const count = (outcome: string): number => episodes[outcome] ?? 0;
    return {
        accepted: count('accepted') + count('partly_accepted') + count('typed_through'),
        judged: count('total') - count('superseded') - count('unseen') - count('unlabelled'),
    };
}

function summary(status: Status, labels: readonly Label[]): string {
    const { adapter, learner, model } = status;
    const accepted = labels.filter((label) => label.accepted).length;
    const rate = labels.length === 0 ? '–' : `${Math.round((100 * accepted) / labels.length)} %`;
    const { active } = adapter;
    const served = active === BASE ? 'the base model, no adapter yet' : `adapter v${active}`;
    const error = learner.last_error
        ? `<p class="bad">Last error: ${escape(learner.last_error)}</p>`
        : '';
    return `<p><span class="big">${rate}</span> of ${labels.length} judged offers were accepted
(${learner.updates} update${learner.updates === 1 ? '' : 's'} made).</p>
<p class="muted">${escape(model.name)}, ${served}. ${escape(learnerLine(status))}.</p>${error}`;
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

function plots(labels: readonly Label[]): string {
    if (labels.length < 2) {
        return '<p class="muted">The plots begin with the second judged offer.</p>';
    }
    const rates = acceptRates(labels, RATE_WIDTH);
    const steps = adapterSteps(labels);
    const top = Math.max(1, ...steps.map((step) => step.version));
    const swaps = steps.filter((step) => step.version !== BASE);
    const marks = swaps.map(({ after }) => verticalMark(after, labels.length)).join('');
    // A swap is drawn as a step: the line of a version ends where the line of the next one begins.
    const versions = steps.flatMap(({ after, version }, at): Point[] => [
        [after, steps[at - 1]?.version ?? version],
        [after, version],
    ]);
    versions.push([labels.length - 1, steps.at(-1)?.version ?? BASE]);
    const rateLine = line('line', [...rates.entries()], labels.length, 1);
    const versionLine = line('step', versions, labels.length, top);
    return `<h2>Accept rate, mean of the last ${RATE_WIDTH} labels</h2>
${plot(labels.length, ['0 %', '50 %', '100 %'], marks + rateLine)}
<h2>Adapter that served, by label</h2>
${plot(labels.length, ['base', `v${top}`], marks + versionLine)}`;
}

function plot(count: number, ticks: string[], content: string): string {
    const { width, height, left, right, bottom } = PLOT;
    const rows = ticks.map((tick, at) => {
        const y = yOf(at, ticks.length - 1);
        return `<line class="axis" x1="${left}" x2="${width - right}" y1="${y}" y2="${y}"/>
<text x="${left - 6}" y="${y + 4}" text-anchor="end">${escape(tick)}</text>`;
    });
    const y = height - bottom + 18;
    return `<svg viewBox="0 0 ${width} ${height}" role="img">${rows.join('')}
<text x="${left}" y="${y}">1</text>
<text x="${width - right}" y="${y}" text-anchor="end">${count} labels</text>${content}</svg>`;
}

/** The number of a label, and the value there. */
type Point = [at: number, value: number];

function line(style: string, points: readonly Point[], count: number, top: number): string {
    const places = points.map(([at, value]) => `${xOf(at, count)},${yOf(value, top)}`);
    return `<polyline class="${style}" points="${places.join(' ')}"/>`;
}

function verticalMark(at: number, count: number): string {
    const x = xOf(at, count);
    const bottom = PLOT.height - PLOT.bottom;
    return `<line class="swap" x1="${x}" x2="${x}" y1="${PLOT.top}" y2="${bottom}"/>`;
}

function xOf(at: number, count: number): number {
    return rounded(PLOT.left + (at / (count - 1)) * (PLOT.width - PLOT.left - PLOT.right));
}

function yOf(value: number, top: number): number {
    const height = PLOT.height - PLOT.top - PLOT.bottom;
    return rounded(PLOT.top + (1 - value / top) * height);
}

function rounded(value: number): number {
    return Math.round(value * 10) / 10;
}

function outcomes({ episodes }: Status): string {
    const rows = OUTCOMES.map(
        ([key, name]) =>
            `<tr><td>${name}</td><td class="number">${Number(episodes[key] ?? 0)}</td></tr>`,
    );
    const total = Number(episodes['total'] ?? 0);
    return `<h2>Outcomes of ${total} offers</h2><table>${rows.join('')}</table>`;
}
