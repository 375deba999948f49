// The doctor's page: what is right and wrong in this window, and what `hone doctor` found on this
// machine. Each line says what was found, and what to do if it is wrong.

import { escape, page } from './html';
import type { Located } from './locate';
import type { ServerState } from './status';
import { MINIMUM_SERVER, serverProblem } from './version';

/** What `hone doctor --json` prints. */
export interface DoctorReport {
    checks: {
        name: string;
        state: 'good' | 'note' | 'wrong';
        found: string;
        fix?: string;
    }[];
}

export interface Findings {
    located: Located;
    /** What `hone --version` printed. */
    version: string | undefined;
    /** What `hone doctor` found, or why it found nothing. */
    machine: DoctorReport | { problem: string } | undefined;
    server: ServerState;
    inlineSuggest: boolean;
    enabled: boolean;
    proposedApi: boolean;
}

export interface Check {
    name: string;
    state: 'good' | 'warning' | 'bad';
    /** What was found. */
    detail: string;
    /** What to do about it. */
    fix?: string;
}

const STATES = { good: 'good', note: 'warning', wrong: 'bad' } as const;

/**
 * What `hone doctor` says of the program's place on PATH and of the editors that start it. Both are
 * of no use in an editor that has found and started it, unless something is wrong, such as a
 * program that is missing next to it.
 */
const OF_THE_SHELL = ['program', 'editors'];

export function checks(found: Findings): Check[] {
    return [
        program(found.located),
        version(found),
        connection(found.server),
        editor(found),
        labels(found.proposedApi),
        ...machine(found.machine),
    ].filter((check) => check !== undefined);
}

function program(located: Located): Check {
    return located.path === undefined
        ? { name: 'Program', state: 'bad', detail: located.problem }
        : { name: 'Program', state: 'good', detail: `${located.path} (${located.source})` };
}

function version({ located, version: printed }: Findings): Check | undefined {
    if (located.path === undefined) return undefined;
    const [name = '', number] = (printed ?? '').trim().split(' ');
    const problem = serverProblem({ name, ...(number && { version: number }) }, located.path);
    return problem
        ? { name: 'Version', state: 'bad', detail: problem }
        : {
              name: 'Version',
              state: 'good',
              detail: `${number}; this extension needs ${MINIMUM_SERVER} or later`,
          };
}

function connection(server: ServerState): Check {
    switch (server.kind) {
        case 'running':
            return { name: 'This window', state: 'good', detail: 'Connected' };
        case 'failed':
            return { name: 'This window', state: 'bad', detail: server.problem };
        case 'starting':
            return { name: 'This window', state: 'warning', detail: 'Starting' };
        case 'stopped':
            return { name: 'This window', state: 'warning', detail: 'Stopped' };
    }
}

function editor({ inlineSuggest, enabled }: Findings): Check {
    if (!inlineSuggest) {
        const detail = 'Inline suggestions are off';
        return { name: 'Editor', state: 'bad', detail, fix: 'set editor.inlineSuggest.enabled' };
    }
    return enabled
        ? { name: 'Editor', state: 'good', detail: 'Inline suggestions and Hone are on' }
        : { name: 'Editor', state: 'warning', detail: 'Hone is off', fix: 'set hone.enabled' };
}

function labels(proposedApi: boolean): Check {
    const detail = proposedApi
        ? 'The editor also reports what it showed (proposed API)'
        : 'Hone’s keys report acceptances, parts and Escape; ' +
          'the server sees the rest in the document';
    return { name: 'Labels', state: 'good', detail };
}

function machine(report: Findings['machine']): Check[] {
    if (!report) return [];
    if ('problem' in report) {
        return [{ name: 'This machine', state: 'bad', detail: report.problem }];
    }
    return report.checks
        .filter(({ name, state }) => state === 'wrong' || !OF_THE_SHELL.includes(name))
        .map(({ name, state, found, fix }) => ({
            name: name.charAt(0).toUpperCase() + name.slice(1),
            state: STATES[state],
            detail: found,
            ...(fix && { fix }),
        }));
}

const MARKS = { good: '✓', warning: '!', bad: '✗' };

export function doctorPage(list: readonly Check[]): string {
    const rows = list.map(({ name, state, detail, fix }) => {
        const mark = `<td class="${state}">${MARKS[state]}</td>`;
        const remedy = fix ? `<br>→ ${escape(fix)}` : '';
        return `<tr>${mark}<th>${escape(name)}</th><td>${escape(detail)}${remedy}</td></tr>`;
    });
    return page('Hone: doctor', `<table>${rows.join('')}</table>`);
}
