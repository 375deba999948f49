// The entries of a recorded session, in the format workspaceRecording@1.0 (docs/book,
// evaluation/recordings.md). `hone record` reads them, leaves out what may not be recorded, and
// writes the file.

export interface RecordedDocument {
    uri: string;
    /** Relative to the folder that is open, or the address. */
    path: string;
    languageId: string;
    version: number;
    text: string;
}

/** A change as VS Code reports it. */
export interface Change {
    rangeOffset: number;
    rangeLength: number;
    text: string;
}

export type Entry = Record<string, unknown>;

/** Documents of one session. More are not recorded. */
const DOCUMENTS_MAX = 1_000;

export class Recording {
    private readonly ids = new Map<string, number>();
    private requests = 0;
    private lastChange: { uri: string; version: number } | undefined;

    constructor(
        private readonly write: (entry: Entry) => void,
        private readonly now: () => number = Date.now,
    ) {
        this.put({ kind: 'header', documentType: 'workspaceRecording@1.0' });
    }

    /** A document is open, or is opened. */
    opened(document: RecordedDocument): void {
        const { uri, path, languageId, version, text } = document;
        let id = this.ids.get(uri);
        if (id === undefined) {
            if (this.ids.size >= DOCUMENTS_MAX) return;
            id = this.ids.size;
            this.ids.set(uri, id);
            this.put({ kind: 'documentEncountered', id, relativePath: path, uri, languageId });
        }
        this.put({ kind: 'setContent', id, content: text, v: version });
    }

    changed(uri: string, version: number, changes: readonly Change[], reason?: string): void {
        const edit = changes.map((change) => [
            change.rangeOffset,
            change.rangeOffset + change.rangeLength,
            change.text,
        ]);
        if (edit.length === 0) return;
        this.in(uri, { kind: 'changed', edit, v: version });
        this.lastChange = { uri, version };
        if (reason !== undefined) this.because(uri, version, reason);
    }

    /** An offer was accepted, which made the last change. */
    accepted(): void {
        if (!this.lastChange) return;
        this.because(this.lastChange.uri, this.lastChange.version, 'inlineSuggestion.accept');
    }

    selected(uri: string, ranges: readonly (readonly [number, number])[]): void {
        this.in(uri, { kind: 'selectionChanged', selection: ranges });
    }

    focused(uri: string): void {
        this.in(uri, { kind: 'focused' });
    }

    closed(uri: string): void {
        this.in(uri, { kind: 'closed' });
    }

    /** The editor asks for completions. */
    asked(uri: string): void {
        const requestId = ++this.requests;
        const data = { sourceId: 'InlineCompletions.fetch', kind: 'start', requestId };
        this.in(uri, { kind: 'documentEvent', data });
    }

    private because(uri: string, version: number, source: string): void {
        const data = { sourceId: 'TextModel.setChangeReason', source, v: version };
        this.in(uri, { kind: 'documentEvent', data });
    }

    private in(uri: string, entry: Entry): void {
        const id = this.ids.get(uri);
        if (id !== undefined) this.put({ ...entry, id });
    }

    private put(entry: Entry): void {
        this.write({ ...entry, time: this.now() });
    }
}

/** What `hone record` prints at the end. */
export interface Recorded {
    path: string;
    entries: number;
    left_out: number;
}

/** What the user is told at the end. */
export function recordedLine({ path, left_out }: Recorded): string {
    const files = `${left_out} file${left_out === 1 ? '' : 's'}`;
    const without = left_out === 0 ? '' : `, without ${files} that may not be recorded`;
    return `the session is in ${path}${without}`;
}
