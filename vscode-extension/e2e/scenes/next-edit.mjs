// The scene of the page about editors: a refactoring. Two edits are made by hand, and Tab makes the
// others.

import { eventually } from '../hone.mjs';
import { END_MS, KEY_MS, KEY_SHOWN_MS, READ_MS } from './pace.mjs';

export const file = 'cart_test.py';

const CHECKS = [
    ['total(CART)', '10'],
    ['count(CART)', '6'],
    ['names(CART)', 'NAMES'],
    ['lightest(CART)', 'TEA'],
    ['oldest(CART)', 'MILK'],
];

export const files = {
    [file]: `from cart import Item, count, lightest, names, oldest, total
from helpers import assert_equal

TEA = Item("tea", price=3, quantity=2)
MILK = Item("milk", price=1, quantity=4)
NAMES = ["tea", "milk"]
CART = [TEA, MILK]


def test_cart():
${CHECKS.map(([found, expected]) => `    assert_equal(${found}, ${expected})\n`).join('')}`,
};

/** Next edits come as you edit, and not only when their key is pressed. */
export const configuration = '[completion]\nnext_edit = "on"\n';

/** The file fits in. */
export const lines = 17;

/** The line of the first check. */
const FIRST_LINE = 11;

export async function opened({ window }) {
    await window.press('Control+Home');
    for (let line = 1; line < FIRST_LINE; line += 1) await window.press('ArrowDown');
}

export async function play({ window }) {
    await window.pause(1_000);
    const [first, second, ...others] = CHECKS;
    await rewrite(window, ...first);
    await window.press('ArrowDown');
    await rewrite(window, ...second);
    for (const [found] of others) {
        await eventually('the next edit', async () => {
            const { line } = await window.nextEdit();
            return line.includes(found);
        });
        await window.pause(READ_MS);
        await window.press('Tab');
        await window.pause(KEY_SHOWN_MS + 200);
        await window.press('Tab');
        await window.pause(KEY_SHOWN_MS);
    }
    await window.pause(END_MS);
}

/** Writes `assert total(CART) == 10` for `assert_equal(total(CART), 10)`. */
async function rewrite(window, found, expected) {
    await window.press('Home');
    await moveRight(window, 'assert'.length);
    await moveRight(window, '_equal('.length, 'Shift+');
    await window.type(' ', KEY_MS);
    await moveRight(window, found.length);
    await moveRight(window, ','.length, 'Shift+');
    await window.type(' ==', KEY_MS);
    await moveRight(window, 1 + expected.length);
    await window.press('Delete');
    await window.pause(KEY_MS);
}

async function moveRight(window, times, held = '') {
    for (let time = 0; time < times; time += 1) {
        await window.press(`${held}ArrowRight`);
        await window.pause(KEY_MS / 3);
    }
}
