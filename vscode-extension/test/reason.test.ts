import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canShow, isOffer, LastReason, offReason, reasonOf } from '../src/core/reason';

test('an answer says why it is as it is', () => {
    const off = { reason: 'switched_off', sentence: 'Off.', remedy: 'hone resume completions' };
    assert.deepEqual(reasonOf({ items: [], _hone: off }), off);
    assert.equal(isOffer(off), false);
    const shown = { reason: 'shown', sentence: 'An offer was shown.' };
    assert.deepEqual(reasonOf({ items: [{}], _hone: { ...shown, other: 1 } }), shown);
    assert.equal(isOffer(shown), true);
});

test('it is shown all the same only where a request by hand shows something', () => {
    const can = (reason: string): boolean => canShow({ reason, sentence: '' });
    for (const reason of ['too_unlikely', 'snoozed', 'off_in_editor', 'after_next_edit']) {
        assert.equal(can(reason), true, reason);
    }
    for (const reason of ['nothing_to_add', 'superseded', 'shown', 'an unknown one']) {
        assert.equal(can(reason), false, reason);
    }
});

test('an older server gives no reason', () => {
    for (const answer of [null, undefined, [], { items: [] }, { items: [], _hone: {} }]) {
        assert.equal(reasonOf(answer), undefined);
    }
});

test('if Hone is off in the editor, the reason names the command that turns it on', () => {
    const on = { enabled: true, languageId: 'markdown', languageOn: true };
    assert.equal(offReason(on), undefined);
    assert.equal(
        offReason({ ...on, languageOn: false })?.sentence,
        'Hone is off for markdown in this editor; ' +
            '`Hone: Turn On or Off for This Language` turns it on.',
    );
    assert.equal(
        offReason({ ...on, enabled: false, languageOn: false })?.sentence,
        'Hone is off in this editor; `Hone: Turn On or Off` turns it on.',
    );
});

test('the reason of one document is not told of another', () => {
    const last = new LastReason();
    const unsure = { reason: 'too_unlikely', sentence: 'The model was not sure.' };
    last.note('file:///a.rs', unsure);
    assert.equal(last.of('file:///a.rs'), unsure);
    assert.equal(last.of('file:///b.rs'), undefined);
    assert.equal(last.of(undefined), undefined);
    last.note('file:///b.rs', undefined);
    assert.equal(last.of('file:///a.rs'), undefined);
    last.note('file:///a.rs', unsure);
    last.forget();
    assert.equal(last.of('file:///a.rs'), undefined);
});
