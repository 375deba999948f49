import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
    Changes,
    Offers,
    offerId,
    partAccepted,
    type Offer,
    type TextView,
} from '../src/core/offers';

const URI = 'file:///a.rs';

function view(text: string, uri = URI): TextView {
    return { uri, slice: (start, end) => text.slice(start, end) };
}

/** An offer of `push(item);` after `list.`. */
function offered(): { offers: Offers; offer: Offer } {
    const offers = new Offers();
    const offer = { id: '1-1', uri: URI, start: 5, text: 'push(item);' };
    offers.replace([offer]);
    return { offers, offer };
}

test('the id of an offer is the first argument of its command', () => {
    assert.equal(offerId({ command: { arguments: ['1-1'] } }), '1-1');
    for (const item of [
        {},
        { command: {} },
        { command: { arguments: [] } },
        { command: { arguments: [7] } },
    ]) {
        assert.equal(offerId(item), undefined);
    }
});

test('an offer stays while its text is typed', () => {
    const { offers } = offered();
    assert.equal(offers.at(view('list.'), 5)?.rest, 'push(item);');
    assert.equal(offers.at(view('list.pus'), 8)?.rest, 'h(item);');
    assert.equal(offers.at(view('list.pop'), 8), undefined, 'something else was typed');
    assert.equal(offers.at(view('list.push(item);'), 16), undefined, 'nothing is left of it');
    assert.equal(offers.at(view('list.'), 4), undefined, 'the cursor went before it');
    assert.equal(offers.at(view('list.', 'file:///b.rs'), 5), undefined, 'another file');
    offers.clear();
    assert.equal(offers.at(view('list.'), 5), undefined);
});

test('an offer that the editor hides is named once', () => {
    const { offers } = offered();
    assert.equal(offers.leftBehind(view('list.'), 5), undefined, 'the cursor is still there');
    assert.equal(offers.hide(), '1-1');
    assert.equal(offers.hide(), undefined);
    assert.equal(offers.leftBehind(view('list.'), 4), undefined, 'nothing is on screen');
});

test('a part is counted in UTF-16 units from where the text is inserted', () => {
    const { offer } = offered();
    assert.equal(partAccepted(offer, view('list.push'), 9), 4);
    assert.equal(
        partAccepted(offer, view('list.push(item);'), 16),
        undefined,
        'the command reports the whole',
    );
    assert.equal(
        partAccepted(offer, view('list.'), 5),
        undefined,
        'another extension’s offer was accepted',
    );
    assert.equal(partAccepted(offer, view('list.sort'), 9), undefined);
    const emoji = { id: '1-2', uri: URI, start: 0, text: '🦀 crab' };
    assert.equal(partAccepted(emoji, view('🦀 '), 3), 3);
});

test('after a step to another offer, that one is accepted in part or rejected', () => {
    const { offers, offer } = offered();
    const [second, third] = [
        { ...offer, id: '1-2', text: 'pop();' },
        { ...offer, id: '1-3', text: 'sort();' },
    ];
    const live = (): string | undefined => offers.at(view('list.'), 5)?.offer.id;
    offers.replace([offer, second, third]);
    assert.equal(live(), '1-1', 'what stood on screen stays there');
    assert.deepEqual(
        [offers.step(1), offers.step(1), offers.step(1), offers.step(-1)],
        ['1-2', '1-3', '1-1', '1-3'],
    );
    offers.replace([offer, second, third]);
    assert.equal(live(), '1-3');
    offers.choose('1-2');
    assert.equal(live(), '1-2', 'as the editor says where it says so');
    offers.choose('9-9');
    assert.equal(live(), '1-2');
    offers.replace([{ ...offer, id: '2-1' }]);
    assert.equal(live(), '2-1');
    offers.clear();
    assert.deepEqual([live(), offers.step(1), offers.step(-1)], [undefined, undefined, undefined]);
});

test('an offer that is shown is reported once, and again when it is shown later', () => {
    const sights = new Changes();
    assert.deepEqual(
        ['1', '1', '2', '2', '1'].map((id) => sights.isNew(id)),
        [true, false, true, false, true],
    );
});
