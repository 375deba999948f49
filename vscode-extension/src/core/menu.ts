// Decides what the menu of the status bar offers. Nothing here knows the editor.

import { NEED_TEXT, needOf, type Need } from './need';
import type { ServerState } from './status';

export interface MenuInputs {
    server: ServerState;
    enabled: boolean;
    eagerness: string;
    /** The language of the active editor, if there is one. */
    language: string | undefined;
    languageOn: boolean;
    /** Whether a folder is open that the user trusts. */
    hasFolder: boolean;
    /** Whether the session is recorded. */
    isRecording: boolean;
}

export interface MenuEntry {
    /** The label begins with a codicon, which no other entry has. */
    label: string;
    /** What the label may leave open. */
    description?: string;
    /** The command without its `hone.`, the list of the other commands, or the output channel. */
    does: string;
}

export interface Menu {
    title: string;
    /** Between two groups is a line. */
    groups: MenuEntry[][];
}

export const MORE = 'more';
export const OUTPUT = 'output';

const DOCTOR = { label: '$(pulse) Doctor', does: 'doctor' };
const RESTART = { label: '$(debug-restart) Restart server', does: 'restart' };
const SHOW_OUTPUT = { label: '$(output) Show output', does: OUTPUT };
const MODEL = { label: '$(package) Pick a model', does: 'model' };

/** What leads on from a state in which something is not there yet. */
const FIRST: Record<Need, MenuEntry> = {
    program: { label: '$(book) How to install the server', does: 'install' },
    model: { label: '$(cloud-download) Get a model', does: 'model' },
};

/** The menu, with the commands that have an effect now. */
export function mainMenu(inputs: MenuInputs): Menu {
    const { server } = inputs;
    if (server.kind !== 'failed') return { title: 'Hone', groups: commands(inputs) };
    const need = needOf(server.problem);
    return need
        ? {
              title: `Hone: ${NEED_TEXT[need]}`,
              groups: [[FIRST[need], DOCTOR, RESTART, SHOW_OUTPUT]],
          }
        : { title: server.problem, groups: [[DOCTOR, RESTART, MODEL, SHOW_OUTPUT]] };
}

function commands({ server, enabled, eagerness, language, languageOn }: MenuInputs): MenuEntry[][] {
    const running = server.kind === 'running';
    const hasText = language !== undefined;
    const entry = (label: string, does: string, isUseful = true): MenuEntry[] =>
        isUseful ? [{ label, does }] : [];
    return [
        [
            ...entry(`${enabled ? '$(circle-slash)' : '$(sparkle)'} ${turn(enabled)}`, 'toggle'),
            ...entry(
                `$(file-code) ${turn(languageOn)} for ${language}`,
                'toggleLanguage',
                enabled && hasText,
            ),
            ...entry('$(bell-slash) Snooze', 'snooze', running),
            ...entry(`$(dashboard) Eagerness: ${eagerness}`, 'eagerness', running),
            ...entry('$(question) Why is nothing shown?', 'why', running),
        ],
        [
            ...entry('$(graph-line) Learning report', 'report'),
            ...entry('$(debug-pause) Pause or resume learning', 'toggleLearning', running),
            ...entry('$(trash) Forget this file', 'forget', running && hasText),
            MODEL,
        ],
        [DOCTOR, { label: '$(ellipsis) More', does: MORE }],
    ];
}

/** The commands that are seldom needed, or have a key. */
export function moreMenu({ server, language, hasFolder, isRecording }: MenuInputs): Menu {
    const running = server.kind === 'running';
    const canComplete = running && language !== undefined;
    const entry = (
        label: string,
        does: string,
        isUseful: boolean,
        description?: string,
    ): MenuEntry[] => (isUseful ? [{ label, does, ...(description && { description }) }] : []);
    return {
        title: 'Hone: more',
        groups: [
            [
                ...entry('$(zap) Complete here now', 'trigger', canComplete),
                ...entry('$(arrow-right) Next edit', 'nextEdit', canComplete),
                ...entry('$(beaker) Try it in a new file', 'tryIt', running),
            ],
            [
                ...entry('$(info) Status', 'status', running),
                ...entry('$(mortar-board) Learn now', 'learn', running),
                ...entry(
                    '$(git-commit) Learn from this workspace’s history',
                    'learnFromHistory',
                    hasFolder,
                ),
                ...entry(
                    '$(discard) Take back what was learned',
                    'adapter',
                    running,
                    'rolls back the adapter',
                ),
                ...entry(
                    '$(terminal) Rehearse on this workspace',
                    'rehearse',
                    hasFolder,
                    'a simulated developer types its history',
                ),
            ],
            [
                ...entry('$(record) Record this session', 'record', running && !isRecording),
                ...entry('$(debug-stop) Stop recording', 'stopRecording', isRecording),
            ],
            [SHOW_OUTPUT, ...entry('$(list-flat) Show the daemon’s log', 'log', running), RESTART],
        ],
    };
}

/** Offers to turn off what is on, and to turn on what is off. */
function turn(isOn: boolean): string {
    return isOn ? 'Turn off' : 'Turn on';
}
