// Decides what the status bar shows. Nothing here knows the editor.

import { NEED_TEXT, needOf } from './need';
import type { Reason } from './reason';

/** A request that is answered sooner than this causes no flicker. */
const THINKING_DELAY_MS = 150;

/** The server's notification `didChangeStatus`. */
export interface StatusLine {
    busy: boolean;
    kind: 'Normal' | 'Warning' | 'Error';
    message: string;
}

/** The message of a server whose model is not in memory yet. */
const LOADING = 'loading the model';

/** Whether the server says that requests wait for the model. */
export function isLoading(line: StatusLine | undefined): boolean {
    return line?.busy === true && line.message === LOADING;
}

export type ServerState =
    | { kind: 'starting' }
    | { kind: 'running' }
    | { kind: 'stopped' }
    | { kind: 'failed'; problem: string };

export interface StatusInputs {
    server: ServerState;
    line: StatusLine | undefined;
    /** Whether learning is paused. Completions continue meanwhile. */
    paused: boolean;
    thinking: boolean;
    /** The setting `hone.enabled`. */
    enabled: boolean;
    /** The language of the active editor, if it is switched off. */
    languageOff: string | undefined;
    /** Why the last request in this document offered nothing. */
    silence?: Reason;
}

export interface StatusItem {
    state: ItemState;
    /** The text begins with a codicon. */
    text: string;
    tooltip: string;
}

type ItemState = keyof typeof ICONS;

/** The codicon of each state. */
const ICONS = {
    ready: 'sparkle',
    thinking: 'loading~spin',
    learning: 'mortar-board',
    paused: 'debug-pause',
    snoozed: 'bell-slash',
    warning: 'warning',
    error: 'error',
    needed: 'cloud-download',
    off: 'circle-slash',
    starting: 'loading~spin',
};

/** What the item in the status bar shows. */
export function statusItem(inputs: StatusInputs): StatusItem {
    const [state, tooltip] = stateOf(inputs);
    const { silence } = inputs;
    const last = silence === undefined ? '' : `\nNothing is shown here: ${silence.sentence}`;
    return { state, text: `$(${ICONS[state]}) Hone`, tooltip: tooltip + last };
}

/** The most important thing to show comes first. */
function stateOf(inputs: StatusInputs): [state: ItemState, tooltip: string] {
    const { server, line, enabled, languageOff, thinking, paused } = inputs;
    if (server.kind === 'failed') {
        const need = needOf(server.problem);
        return need ? ['needed', NEED_TEXT[need]] : ['error', server.problem];
    }
    if (!enabled) return ['off', 'Off'];
    if (server.kind === 'stopped') return ['off', 'Stopped'];
    if (server.kind === 'starting') return ['starting', 'Starting'];
    if (isLoading(line)) return ['starting', 'Loading the model'];
    if (line?.kind === 'Error') return ['error', line.message];
    if (languageOff !== undefined) return ['off', `Off for ${languageOff}`];
    if (thinking) return ['thinking', 'Thinking'];
    if (line?.kind === 'Warning') return ['warning', line.message];
    // Completions continue while an update runs.
    if (line?.busy) return ['learning', 'Learning from your labels'];
    if (inputs.silence?.reason === 'snoozed') return ['snoozed', line?.message ?? 'Snoozed'];
    if (paused) return ['paused', line?.message ?? 'Learning is paused'];
    return ['ready', line?.message ?? 'Ready'];
}

/** Reports when a request has been under way for so long that the status bar should show it. */
export class Thinking {
    private underWay = 0;
    private timer: NodeJS.Timeout | undefined;
    private on = false;

    constructor(private readonly changed: (thinking: boolean) => void) {}

    /** Records that a request begins. Call the returned function when it ends. */
    begin(): () => void {
        this.underWay += 1;
        this.timer ??= setTimeout(() => this.turn(true), THINKING_DELAY_MS);
        let open = true;
        return () => {
            if (!open) return;
            open = false;
            this.underWay -= 1;
            if (this.underWay === 0) this.dispose();
        };
    }

    dispose(): void {
        clearTimeout(this.timer);
        this.timer = undefined;
        this.turn(false);
    }

    private turn(on: boolean): void {
        if (this.on === on) return;
        this.on = on;
        this.changed(on);
    }
}
