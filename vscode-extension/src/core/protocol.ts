// Hone's own messages, in addition to those of the language server protocol.

import {
    NotificationType,
    RequestType,
    RequestType0,
    type Command,
    type Range,
    type TextDocumentPositionParams,
} from 'vscode-languageserver-protocol';
import type { After } from './nextEdit';
import type { StatusLine } from './status';

/**
 * The command of an item, which the editor runs when the offer is accepted. Its argument is the
 * offer's id.
 */
export const ACCEPT_COMMAND = 'hone.accept';

export interface ItemReference {
    item: { command: { title: string; command: string; arguments: [string] } };
}

/** `turnedTo`: the user turned to it, in an editor that does not say what it shows by itself. */
export const didShow = new NotificationType<ItemReference & { turnedTo: boolean }>(
    'textDocument/didShowCompletion',
);

/** Reports where the cursor came to rest. */
export const didFocus = new NotificationType<TextDocumentPositionParams>('textDocument/didFocus');

/** Copilot's request for the next edit. An answer has one edit or none. */
export const inlineEdit = new RequestType<
    TextDocumentPositionParams & {
        textDocument: { version: number };
        context: { triggerKind: number; after?: After };
    },
    { edits: InlineEdit[] },
    void
>('textDocument/copilotInlineEdit');

export interface InlineEdit {
    text: string;
    textDocument: { uri: string; version: number };
    range: Range;
    command: Command;
    /** What must stand in the range for the edit to be made. */
    _hone: { old: string };
}

export const didShowEdit = new NotificationType<ItemReference>('textDocument/didShowInlineEdit');

/** `acceptedLength` is in UTF-16 units from the start of the item's text. */
export const didPartiallyAccept = new NotificationType<ItemReference & { acceptedLength: number }>(
    'textDocument/didPartiallyAcceptCompletion',
);

/**
 * The reason `hidden` means that the offer is not on screen, and that the user did not reject it.
 */
export const didReject = new NotificationType<{ id: string; reason: 'esc' | 'hidden' }>(
    'hone/didReject',
);

export const didChangeStatus = new NotificationType<StatusLine>('didChangeStatus');

export const statusRequest = new RequestType0<Status, void>('hone/status');

export const learnRequest = new RequestType0<{ started: boolean; waiting: number }, void>(
    'hone/learn',
);

/** What is to be silent, and for how long. */
export type Snooze =
    | { what: 'everything'; seconds?: number }
    | { what: 'file' | 'folder'; path: string }
    | { what: 'nothing' };

export const snoozeRequest = new RequestType<Snooze, null, void>('hone/snooze');

/** Forgets everything that was recorded about a file, and every adapter that learned from it. */
export const forgetRequest = new RequestType<{ uri: string }, Forgotten, void>('hone/forget');

export interface Forgotten {
    events: number;
    offers: number;
    /** Versions of the adapters that were removed. */
    adapters: number[];
    /** The version that serves from now on, or `BASE`. */
    serves: number;
    /** Why adapters that may have learned from it are left, and what to do about it. */
    adapters_left?: string;
}

export function itemReference(id: string): ItemReference {
    return { item: { command: { title: '', command: ACCEPT_COMMAND, arguments: [id] } } };
}

/**
 * The answer to `hone/status`, which `hone status --json` prints too: the parts that the extension
 * uses.
 */
export interface Status {
    version: string;
    paths: { log: string };
    daemon: { pid: number; uptime_s: number; sessions: number } | null;
    model: { name: string; path: string; backend: string | null };
    adapter: { active: number; updated_at: number | null };
    episodes: Record<string, number>;
    learner: {
        state: 'idle' | 'waiting' | 'training' | 'backoff' | 'off';
        updates: number;
        last_update_ms: number | null;
        last_error: string | null;
        waiting: number;
        batch: number;
        progress: string | null;
        /** Why no update starts although there are enough labels. */
        held_back: string | null;
    };
}
