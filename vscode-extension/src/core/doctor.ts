// The doctor's page: a list of checks. Each says what was found, and what to do if it is wrong.

import { escape, page } from './html';
import type { Located } from './locate';
import type { Status } from './protocol';
import type { ServerState } from './status';
import { MINIMUM_SERVER, serverProblem } from './version';

export interface Findings {
    located: Located;
    /** What `hone --version` printed. */
    version: string | undefined;
    /** What `hone status --json` printed, or why it failed. */
    status: Status | { problem: string } | undefined;
    /** What `hone model path` printed, or why it failed. */
    model: { path: string } | { problem: string } | undefined;
    /** The permission bits of the daemon's socket, or `undefined` if there is no socket. */
    socketMode: number | undefined;
    server: ServerState;
    inlineSuggest: boolean;
    enabled: boolean;
    proposedApi: boolean;
}

export interface Check {
    name: string;
    state: 'good' | 'warning' | 'bad';
    /** What was found, and what to do about it. */
    detail: string;
}

export function checks(found: Findings): Check[] {
    return [
        binary(found.located),
        version(found),
        configuration(found.status),
        model(found.model),
        daemon(found.status),
        socket(found),
        files(found.status),
        connection(found.server),
        editor(found),
        labels(found.proposedApi),
    ].filter((check) => check !== undefined);
}

function binary(located: Located): Check {
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

function configuration(status: Findings['status']): Check | undefined {
    if (!status) return undefined;
    const problem = 'problem' in status ? status.problem : status.settings_problems?.join('; ');
    return problem ? { name: 'Configuration', state: 'bad', detail: problem } : undefined;
}

function model(found: Findings['model']): Check | undefined {
    if (!found) return undefined;
    return 'problem' in found
        ? { name: 'Model', state: 'bad', detail: found.problem }
        : { name: 'Model', state: 'good', detail: found.path };
}

function daemon(status: Findings['status']): Check | undefined {
    if (!status || 'problem' in status) return undefined;
    const running = status.daemon;
    if (!running) {
        const detail = 'Not running; `Hone: Restart Server` starts it';
        return { name: 'Daemon', state: 'warning', detail };
    }
    const serves = `${status.model.name} on ${status.model.backend ?? 'no backend yet'}`;
    const detail = `Process ${running.pid}, ${running.sessions} window(s), ${serves}`;
    return { name: 'Daemon', state: 'good', detail };
}

/** Bits of a file mode that give access to others than its owner. */
const OTHERS = 0o077;

function socket({ socketMode, status }: Findings): Check | undefined {
    if (!status || 'problem' in status || !status.daemon) return undefined;
    if (socketMode === undefined) {
        return { name: 'Socket', state: 'warning', detail: `Missing: ${status.paths.socket}` };
    }
    const mode = `mode ${(socketMode & 0o777).toString(8)}`;
    if ((socketMode & OTHERS) === 0) {
        return { name: 'Socket', state: 'good', detail: `Private to you (${mode})` };
    }
    const detail = `Others can open it (${mode}); run \`hone stop\`, then restart the server`;
    return { name: 'Socket', state: 'bad', detail };
}

function files(status: Findings['status']): Check | undefined {
    if (!status || 'problem' in status) return undefined;
    const { home, config, log } = status.paths;
    const detail = `${home}; settings in ${config}; the daemon’s log is ${log}`;
    return { name: 'Files', state: 'good', detail };
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
        const detail = 'Inline suggestions are off; set editor.inlineSuggest.enabled';
        return { name: 'Editor', state: 'bad', detail };
    }
    return enabled
        ? { name: 'Editor', state: 'good', detail: 'Inline suggestions and Hone are on' }
        : { name: 'Editor', state: 'warning', detail: 'Hone is off; set hone.enabled' };
}

function labels(proposedApi: boolean): Check {
    const detail = proposedApi
        ? 'The editor also reports what it showed (proposed API)'
        : 'Hone’s keys report acceptances, parts and Escape; ' +
          'the server sees the rest in the document';
    return { name: 'Labels', state: 'good', detail };
}

const MARKS = { good: '✓', warning: '!', bad: '✗' };

export function doctorPage(list: readonly Check[]): string {
    const rows = list.map(({ name, state, detail }) => {
        const mark = `<td class="${state}">${MARKS[state]}</td>`;
        return `<tr>${mark}<th>${escape(name)}</th><td>${escape(detail)}</td></tr>`;
    });
    return page('Hone: doctor', `<table>${rows.join('')}</table>`);
}
