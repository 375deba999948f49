import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, feed, lastLine, run } from '../src/core/program';

test('an error is the last line that the program printed', async () => {
    assert.equal(lastLine('a\nError: model.gguf is missing\n\n'), 'model.gguf is missing');
    assert.equal(lastLine(' \n'), undefined);
    const script = 'console.error("noise"); console.error("Error: no model"); process.exit(1)';
    await assert.rejects(ask(process.execPath, ['-e', script]), { message: 'no model' });
    await assert.rejects(run(process.execPath, ['-e', script]), { message: 'no model' });
    await assert.rejects(run('/no/such/program', []), /ENOENT/);
});

test('a program that ends without a word is told with its code', async () => {
    const ended = run(process.execPath, ['-e', 'process.exit(3)']);
    await assert.rejects(ended, /-e process\.exit\(3\): ended with code 3, and said nothing/);
});

test('lines arrive one by one, and a line that cannot be read is an error', async () => {
    const lines: string[] = [];
    await run(process.execPath, ['-e', 'console.log("1\\n2")'], (line) => lines.push(line));
    assert.deepEqual(lines, ['1', '2']);
    const reading = run(process.execPath, ['-e', 'console.log("{")'], (line) => JSON.parse(line));
    await assert.rejects(reading, SyntaxError);
});

test('a program that is fed prints once its lines have ended, or says what is wrong', async () => {
    const counts =
        'let n = 0; process.stdin.on("data", (d) => (n += d.length)).on("end", () => ' +
        'console.log(n))';
    const fed = feed(process.execPath, ['-e', counts]);
    fed.write('abc');
    fed.write('de');
    fed.end();
    assert.equal((await fed.printed).trim(), '7');
    const failing = feed(process.execPath, ['-e', 'console.error("Error: no"); process.exit(1)']);
    failing.write('x');
    await assert.rejects(failing.printed, { message: 'no' });
    await assert.rejects(feed('/no/such/program', []).printed, /ENOENT/);
});
