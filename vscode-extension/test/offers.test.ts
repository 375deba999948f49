import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Offers, Once, offerId, partTaken, type Offer, type TextView } from '../src/offers';

const URI = 'file:///a.rs';

function view(text: string, uri = URI): TextView {
    return { uri, slice: (start, end) => text.slice(start, end) };
}

/** An offer of `push(item);` after `list.`. */
function offered(): { offers: Offers; offer: Offer } {
    const offers = new Offers();
    const offer = { id: '1-1', uri: URI, start: 5, text: 'push(item);' };
    offers.served(offer);
    return { offers, offer };
}

test('the id is the first argument of the command, and nothing else is', () => {
    assert.equal(offerId({ command: { arguments: ['1-1'] } }), '1-1');
    for (const item of [{}, { command: {} }, { command: { arguments: [] } }, { command: { arguments: [7] } }]) {
        assert.equal(offerId(item), undefined);
    }
});

test('an offer lives on while it is typed along', () => {
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

test('a part is counted in UTF-16 units from where the text goes in', () => {
    const { offer } = offered();
    assert.equal(partTaken(offer, view('list.push'), 9), 4);
    assert.equal(partTaken(offer, view('list.push(item);'), 16), undefined, 'the whole is told by its command');
    assert.equal(partTaken(offer, view('list.'), 5), undefined, 'another extension took its own');
    assert.equal(partTaken(offer, view('list.sort'), 9), undefined);
    const emoji = { id: '1-2', uri: URI, start: 0, text: '🦀 crab' };
    assert.equal(partTaken(emoji, view('🦀 '), 3), 3);
});

test('beside a selected suggestion only an offer that goes on from it is asked for', () => {
    const { offers } = offered();
    const typed = view('list.pu');
    assert.equal(offers.extends(typed, 7, { start: 5, text: 'push' }), true);
    assert.equal(offers.extends(typed, 7, { start: 5, text: 'put' }), false);
    offers.clear();
    assert.equal(offers.extends(typed, 7, { start: 5, text: 'push' }), false, 'it would be a new offer, never shown');
});

test('a sight of an offer is reported once, and memory is bounded', () => {
    const once = new Once();
    assert.deepEqual([once.first('1'), once.first('1'), once.first('2')], [true, false, true]);
    for (let id = 3; id < 1_000; id += 1) once.first(String(id));
    assert.equal(once.first('999'), false);
    assert.equal(once.first('1'), true, 'long forgotten');
});
