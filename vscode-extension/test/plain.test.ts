import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutLinks } from '../src/core/plain';

/** How VS Code finds links in the text of a notification. */
const LINK = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)(?: (["'])(.+?)(\3))?\)/i;

test('no name becomes a link', () => {
    for (const name of [
        '[click](command:hone.forget).py',
        'a [x](https://example.org "y") b',
        '[x](file:///etc/passwd)',
        '[a](command:x)[b](command:y)',
    ]) {
        assert.match(name, LINK);
        assert.doesNotMatch(withoutLinks(name), LINK);
        assert.equal(withoutLinks(name).replaceAll('\u200B', ''), name);
    }
    assert.equal(withoutLinks('f(x)[0] (a)'), 'f(x)[0] (a)');
});
