import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SCRATCHES, cursor, scratchesFor } from '../src/core/scratch';

test('the language in use comes first, and none is lost', () => {
    assert.equal(scratchesFor('rust')[0]!.languageId, 'rust');
    for (const languageId of ['rust', 'plaintext', undefined]) {
        const ids = scratchesFor(languageId).map((one) => one.languageId);
        assert.equal(new Set(ids).size, SCRATCHES.length);
    }
});

test('the cursor stands behind the word that the model continues', () => {
    for (const scratch of SCRATCHES) {
        const { line, character } = cursor(scratch);
        const text = (scratch.before + scratch.after).split('\n')[line]!;
        assert.equal(text.slice(0, character).trim(), 'return', scratch.name);
        assert.equal(text.length, character, scratch.name);
        assert.match(scratch.before, /^(#|\/\/) .*Tab accepts it/, scratch.name);
    }
});
