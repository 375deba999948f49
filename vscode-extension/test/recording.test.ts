import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Recording, recordedLine, type Entry } from '../src/core/recording';

const FILE = {
    uri: 'file:///p/src/a.ts',
    path: 'src/a.ts',
    languageId: 'typescript',
    version: 3,
    text: 'let x',
};

/** The entries of a session, after the header. */
function entries(session: (recording: Recording) => void): Entry[] {
    const log: Entry[] = [];
    let now = 0;
    session(
        new Recording(
            (entry) => log.push(entry),
            () => ++now,
        ),
    );
    assert.deepEqual(log[0], { kind: 'header', documentType: 'workspaceRecording@1.0', time: 1 });
    return log.slice(1);
}

test('a document is introduced once, and has its text whenever it is opened', () => {
    const log = entries((recording) => {
        recording.opened(FILE);
        recording.closed(FILE.uri);
        recording.opened({ ...FILE, version: 4, text: 'let y' });
    });
    const kinds = ['documentEncountered', 'setContent', 'closed', 'setContent'];
    assert.deepEqual(
        log.map(({ kind, id }) => [kind, id]),
        kinds.map((kind) => [kind, 0]),
    );
    assert.equal(log[0]?.['relativePath'], 'src/a.ts');
    assert.deepEqual([log[1]?.['content'], log[3]?.['content']], ['let x', 'let y']);
});

test('changes are offsets, and an accept names the change before it', () => {
    const change = { rangeOffset: 4, rangeLength: 1, text: 'yes' };
    const log = entries((recording) => {
        recording.opened(FILE);
        recording.asked(FILE.uri);
        recording.changed(FILE.uri, 4, [change]);
        recording.accepted();
        recording.changed(FILE.uri, 5, [{ ...change, text: 'x' }], 'undo');
        recording.changed(FILE.uri, 6, []);
        recording.selected(FILE.uri, [[5, 5]]);
    }).slice(2);
    const reason = (source: string, v: number): Entry => ({
        sourceId: 'TextModel.setChangeReason',
        source,
        v,
    });
    const about = (entry: Entry): unknown => entry['data'] ?? entry['edit'] ?? entry['selection'];
    assert.deepEqual(log.map(about), [
        { sourceId: 'InlineCompletions.fetch', kind: 'start', requestId: 1 },
        [[4, 5, 'yes']],
        reason('inlineSuggestion.accept', 4),
        [[4, 5, 'x']],
        reason('undo', 5),
        [[5, 5]],
    ]);
});

test('nothing is told of a document that was not introduced', () => {
    const log = entries((recording) => {
        recording.focused('output:1');
        recording.changed('output:1', 1, [{ rangeOffset: 0, rangeLength: 0, text: 'x' }]);
        recording.accepted();
    });
    assert.deepEqual(log, []);
});

test('the end says where the file is and how much was left out', () => {
    const recorded = { path: '/h/recordings/session-1.json', entries: 9, left_out: 0 };
    assert.equal(recordedLine(recorded), 'the session is in /h/recordings/session-1.json');
    const without = recordedLine({ ...recorded, left_out: 1 });
    assert.ok(without.endsWith('session-1.json, without 1 file that may not be recorded'));
});
