// The scene of the README: somebody types, accepts three offers and rejects one, and an update
// begins.
//
// Nothing is cut and nothing is arranged but this: the same person has typed another file before,
// with twelve labels, so that the four of the picture are enough for an update.

import { eventually } from '../hone.mjs';
import { END_MS, KEY_MS, KEY_SHOWN_MS, READ_MS } from './pace.mjs';

/** How long an offer may take. Where the model is not sure enough, there is none. */
const OFFER_LIMIT_MS = 2_500;
/** How long the server may take to log what became of an offer. */
const LABEL_MS = 300;
/** The labels of the picture itself: three accepted offers and a rejected one. */
const LABELS = 4;

const BEFORE = 'stock.py';
const FILE = 'basket.py';
const ITEM = `from dataclasses import dataclass


@dataclass
class Item:
    name: str
    price: float
    quantity: int


`;
export const files = {
    [BEFORE]: ITEM,
    [FILE]: `${ITEM}def cheapest(items):\n    return min(items, key=lambda item: item.price)\n\n\n`,
};

export const file = FILE;

/** Hone's settings are the defaults. */
export const configuration = '';

/** What was typed before, and at `|` somebody waits for an offer. */
const STOCK = [
    'def total(|items):',
    '    return sum(|item.price * item.quantity for item in items)',
    'def count(|items):',
    '    return sum(|item.quantity for item in items)',
    'def names(|items):',
    '    return [|item.name for item in items]',
    'def in_stock(|items):',
    '    return [|item for item in items if item.quantity > 0]',
    'def sold_out(|items):',
    '    return [|item for item in items if item.quantity == 0]',
    'def by_name(|items):',
    '    return sorted(|items, key=lambda item: item.name)',
    'def by_price(|items):',
    '    return sorted(|items, key=lambda item: item.price)',
    'def by_quantity(|items):',
    '    return sorted(|items, key=lambda item: item.quantity)',
    'def prices(|items):',
    '    return {|item.name: item.price for item in items}',
    'def average_price(|items):',
    '    return total(|items) / count(items)',
];

export async function before({ window, hone }) {
    await window.file(BEFORE);
    await typeBefore(window, hone);
    await window.press('Control+s');
    await window.command('View: Close Editor');
}

/** Types lines until as many labels wait as the picture's own need for an update. */
async function typeBefore(window, hone) {
    const { batch } = hone.status().learner;
    const waiting = () => hone.status().learner.waiting;
    for (const line of STOCK) {
        const [typed, rest] = line.trimStart().split('|');
        await window.type(typed, KEY_MS);
        const ghost = await offerOrNone(window);
        await window.pause(ghost ? READ_MS : 0);
        if (ghost && ghost === rest) {
            await window.press('Tab');
        } else {
            await window.press('Escape');
            await window.type(rest, KEY_MS);
        }
        await window.pause(LABEL_MS);
        if (waiting() >= batch - LABELS) return;
        await nextLine(window, line.startsWith(' '));
    }
    throw new Error(`only ${waiting()} labels came of ${BEFORE}, not ${batch - LABELS}`);
}

/** The text of the offer, or '' if none comes. */
async function offerOrNone(window) {
    for (const end = Date.now() + OFFER_LIMIT_MS; Date.now() < end; await window.pause(50)) {
        const ghost = await window.ghost();
        if (ghost) return ghost;
    }
    return '';
}

/** The editor indents a new line as the last one. After a function, two empty ones come first. */
async function nextLine(window, endsFunction) {
    await window.type(endsFunction ? '\n\n\n' : '\n', KEY_MS);
    if (endsFunction) await window.press('Backspace');
}

export async function play({ window, hone }) {
    await window.pause(1_000);
    await window.type('def m', KEY_MS);
    await answer(window, 'Tab');
    await nextLine(window, false);
    await answer(window, 'Tab');
    await nextLine(window, true);
    await window.type('def f', KEY_MS);
    await answer(window, 'Escape');
    await window.type('ind(items, name):', KEY_MS);
    await nextLine(window, false);
    await answer(window, 'Tab');
    // This was the sixteenth label. The update begins by itself.
    await eventually('it learns', () => hone.status().learner.state === 'training');
    await window.pause(600);
    await window.press('F1');
    await window.pause(300);
    await window.type('hone status', KEY_MS);
    await window.pause(500);
    // The entry is clicked, because screencast mode puts a wrong name on the Enter of a list.
    await window.choose('Hone: Status');
    await window.page.locator('.notification-list-item', { hasText: 'judged offers' }).waitFor();
    await window.pause(END_MS);
}

/** Waits for an offer, reads it, and answers it with a key. */
async function answer(window, key) {
    await eventually('an offer', () => window.ghost());
    await window.pause(READ_MS);
    await window.press(key);
    await window.noGhost();
    await window.pause(KEY_SHOWN_MS);
}
