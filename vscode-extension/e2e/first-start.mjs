// The first start of somebody who has neither the program nor a model, up to the first Tab.

import assert from 'node:assert/strict';
import { createReadStream, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import { Hone, eventually } from './hone.mjs';
import { required } from './setup.mjs';

const MODEL = 'smollm2-135m';

/** Serves the files of a folder by their names, as a mirror of the hub does. */
async function mirrorOf(folder) {
    const server = createServer(({ url }, response) => {
        const file = join(folder, basename(url));
        response.writeHead(200, { 'content-length': statSync(file).size });
        createReadStream(file).pipe(response);
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** A `hone` that looks for models in a home of its own. Returns its path. */
function programFor(hone, folder) {
    const path = join(folder, 'hone');
    const text = `#!/bin/sh\nHONE_HOME='${hone.home}' exec '${hone.program}' "$@"\n`;
    writeFileSync(path, text, { mode: 0o755 });
    return path;
}

/** Looks at the menu of the status bar, which begins with what leads on. */
async function menuIs(window, entries) {
    await window.clickStatus();
    assert.deepEqual(await window.choices(), entries);
    await window.shot(`first-menu-${entries[0].replaceAll(' ', '-')}`);
    await window.press('Escape');
}

/** Takes the offer of the file that *Try It* opens. */
async function firstTab(window, hone) {
    await window.choose('Python');
    await eventually('an offer', async () => (await window.ghost()).trim() === 'a - b');
    hone.offerWasRead();
    await window.shot('first-tab');
    await window.press('Tab');
    await window.noGhost();
}

async function firstStart(at, hone, mirror) {
    const others = ['Doctor', 'Restart server', 'Show output'];
    at.set({ 'hone.path': '' });
    const window = await at.open({ folder: at.folder('first', { 'first.py': '' }) });
    await window.notification('The program hone is not installed yet').waitFor();
    await window.statusIs('needed');
    await window.openWalkthrough();
    await window.areTicked();
    await window.shot('first-no-program');
    await menuIs(window, ['How to install the server', ...others]);

    const path = programFor(hone, at.folder('program', {}));
    at.set({ 'hone.path': path, 'hone.mirror': mirror.url });
    const notice = window.notification(`Hone needs a model: ${MODEL}, 94 MiB.`);
    await notice.waitFor();
    await window.statusIs('needed');
    await window.areTicked('server');
    await window.shot('first-no-model');
    await menuIs(window, ['Get a model', ...others]);
    assert.equal(await window.errors().count(), 0, 'what is not there yet is no error');

    await notice.getByRole('button', { name: 'Download' }).click();
    const ready = window.notification(`Hone is ready: ${MODEL}.`);
    await ready.waitFor();
    await window.statusIs('ready');
    await window.areTicked('server', 'model');
    await window.shot('first-ready');
    await ready.getByRole('button', { name: 'Try It' }).click();
    await firstTab(window, hone);
    await window.openWalkthrough();
    await window.areTicked('server', 'model', 'keys');
    await window.shot('first-ticks');
    await window.close();
}

export const stories = {
    async 'the first start asks for the program and for a model, up to the first Tab'(at) {
        const hone = new Hone(required('HONE_BIN'), at.folder('no-models', {}), MODEL);
        const mirror = await mirrorOf(required('HONE_TEST_MODELS'));
        try {
            await firstStart(at, hone, mirror);
        } finally {
            // The other window has followed, because all windows share the machine's settings.
            at.set({});
            await at.window.statusIs('ready');
            await at.window.command('Notifications: Clear All Notifications');
            mirror.close();
            hone.dispose();
        }
    },
};
