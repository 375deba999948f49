// Records what a page shows, and makes one moving picture of it.

import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A frame that stands for less than this is not seen, so the next one takes its place. */
const SHORTEST_FRAME_MS = 40;

export class Recorder {
    /** Begins to record. The browser sends a frame whenever the page has changed. */
    static async start(page) {
        const recorder = new Recorder(await page.context().newCDPSession(page));
        await recorder.begin();
        return recorder;
    }

    constructor(session) {
        this.session = session;
        this.frames = [];
    }

    async begin() {
        this.session.on('Page.screencastFrame', ({ data, metadata, sessionId }) => {
            this.frames.push({
                png: Buffer.from(data, 'base64'),
                atMs: metadata.timestamp * 1000,
            });
            void this.session.send('Page.screencastFrameAck', { sessionId });
        });
        await this.session.send('Page.startScreencast', { format: 'png' });
    }

    /** Stops, and returns the frames with the time that each of them stands. */
    async stop() {
        const endMs = Date.now();
        await this.session.send('Page.stopScreencast');
        return withTimes(this.frames, endMs);
    }
}

/** Leaves out frames that repeat the one before, and those that are too short to be seen. */
export function withTimes(frames, endMs) {
    const shown = [];
    for (const frame of frames) {
        const last = shown.at(-1);
        if (last?.png.equals(frame.png)) continue;
        if (last && frame.atMs - last.atMs < SHORTEST_FRAME_MS) last.png = frame.png;
        else shown.push({ ...frame });
    }
    return shown.map(({ png, atMs }, at) => ({
        png,
        ms: Math.round((shown[at + 1]?.atMs ?? endMs) - atMs),
    }));
}

/** Writes the frames into `folder` and makes an animated WebP of them, without loss. */
export function writeWebp(frames, folder, target) {
    mkdirSync(folder, { recursive: true });
    const parts = frames.flatMap(({ png, ms }, at) => {
        const name = `${String(at).padStart(4, '0')}.png`;
        writeFileSync(join(folder, name), png);
        return ['-d', String(ms), name];
    });
    execFileSync(
        'img2webp',
        ['-loop', '0', '-min_size', '-lossless', '-m', '6', ...parts, '-o', target],
        { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] },
    );
}
