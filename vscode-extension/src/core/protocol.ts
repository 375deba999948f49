// Hone's own messages, beside those of the language server protocol.

import { NotificationType, RequestType, RequestType0, type TextDocumentPositionParams } from 'vscode-languageclient/node';
import type { StatusLine } from './status';

/** Run by the item an offer comes in; its argument is the offer's id. */
export const ACCEPT_COMMAND = 'hone.accept';

export interface ItemReference {
    item: { command: { title: string; command: string; arguments: [string] } };
}

export const didShow = new NotificationType<ItemReference>('textDocument/didShowCompletion');

/** Where the cursor came to rest. */
export const didFocus = new NotificationType<TextDocumentPositionParams>('textDocument/didFocus');

/** `acceptedLength`: UTF-16 units from the start of the item's text. */
export const didPartiallyAccept = new NotificationType<ItemReference & { acceptedLength: number }>(
    'textDocument/didPartiallyAcceptCompletion',
);

/** `hidden`: not on screen (any more), and nobody said no to it. */
export const didReject = new NotificationType<{ id: string; reason: 'esc' | 'hidden' }>('hone/didReject');

export const didChangeStatus = new NotificationType<StatusLine>('didChangeStatus');

export const statusRequest = new RequestType0<Status, void>('hone/status');

export const learnRequest = new RequestType0<{ started: boolean; waiting: number }, void>('hone/learn');

/** All that was recorded about a file, and every adapter that learned from it. */
export const forgetRequest = new RequestType<{ uri: string }, Forgotten, void>('hone/forget');

export interface Forgotten {
    events: number;
    offers: number;
    /** Versions of the adapters that are gone. */
    adapters: number[];
    /** The version that serves from now on; 0 is the model alone. */
    serves: number;
}

export function itemReference(id: string): ItemReference {
    return { item: { command: { title: '', command: ACCEPT_COMMAND, arguments: [id] } } };
}

/** `hone/status` and `hone status --json`: the parts used here. */
export interface Status {
    version: string;
    paths: { home: string; config: string; socket: string; log: string };
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
        /** Why labels wait although there are enough. */
        held_back: string | null;
    };
}
