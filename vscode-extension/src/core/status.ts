// Decides what the status bar shows. Nothing here knows the editor.

/** A request that is answered sooner than this causes no flicker. */
const THINKING_DELAY_MS = 150;

/** The server's notification `didChangeStatus`. */
export interface StatusLine {
    busy: boolean;
    kind: 'Normal' | 'Warning' | 'Error';
    message: string;
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
}

export interface StatusItem {
    state: 'ready' | 'thinking' | 'learning' | 'paused' | 'warning' | 'error' | 'off' | 'starting';
    /** Begins with a codicon. */
    text: string;
    tooltip: string;
}

export function shown(known: StatusInputs): StatusItem {
    const { server, line } = known;
    if (server.kind === 'failed')
        return { state: 'error', text: '$(error) Hone', tooltip: server.problem };
    if (!known.enabled) return { state: 'off', text: '$(circle-slash) Hone', tooltip: 'Off' };
    if (server.kind === 'stopped')
        return { state: 'off', text: '$(circle-slash) Hone', tooltip: 'Stopped' };
    if (server.kind === 'starting') {
        return {
            state: 'starting',
            text: '$(loading~spin) Hone',
            tooltip: 'Starting and loading the model',
        };
    }
    if (line?.kind === 'Error')
        return { state: 'error', text: '$(error) Hone', tooltip: line.message };
    if (known.languageOff !== undefined) {
        return {
            state: 'off',
            text: '$(circle-slash) Hone',
            tooltip: `Off for ${known.languageOff}`,
        };
    }
    if (known.thinking)
        return { state: 'thinking', text: '$(loading~spin) Hone', tooltip: 'Thinking' };
    if (line?.kind === 'Warning')
        return { state: 'warning', text: '$(warning) Hone', tooltip: line.message };
    // Completions continue while an update runs.
    if (line?.busy)
        return {
            state: 'learning',
            text: '$(mortar-board) Hone',
            tooltip: 'Learning from your labels',
        };
    if (known.paused)
        return {
            state: 'paused',
            text: '$(debug-pause) Hone',
            tooltip: line?.message ?? 'Learning is paused',
        };
    return { state: 'ready', text: '$(sparkle) Hone', tooltip: line?.message ?? 'Ready' };
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
