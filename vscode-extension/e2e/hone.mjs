// Hone with a home of its own. The tests check what its daemon logged.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

export const POLL_MS = 50;
const LIMIT_MS = 30_000;
/** How often a program is asked. */
const ASK_MS = 250;
/** An offer that stayed this long counts as seen. */
const READING_MS = 400;

/**
 * A batch is larger than all stories make labels, so that an update begins only when a story asks
 * for one. There is little to compute, with one thread and much time, because the machine is busy.
 */
const settings = (model) => `
[model]
name = "${model}"
threads = 1
[gate]
enabled = false
[lab]
budget_ms = 60000
min_token_probability = 0
trial = false
batch_episodes = 1000
prefix_chars = 400
`;

export class Hone {
    /**
     * `configuration` is the text of `config.toml`. If it is left out, `model` serves with the
     * settings of the stories.
     */
    constructor(bin, models, model, configuration = settings(model)) {
        this.program = join(bin, 'hone');
        // This path is short, because the path of a socket in it must be.
        this.home = mkdtempSync(join(tmpdir(), 'hone-'));
        mkdirSync(join(this.home, 'models'));
        for (const file of readdirSync(models)) {
            symlinkSync(join(models, file), join(this.home, 'models', file));
        }
        writeFileSync(join(this.home, 'config.toml'), configuration);
        this.log = join(this.home, 'logs/daemon.log');
        this.environment = { HONE_HOME: this.home, HONE_CLOCK: 'movable' };
        this.recorded = [];
        this.follow();
    }

    /** Reads the daemon's log as it is written. */
    follow() {
        this.follower = spawn(this.program, ['events', '--follow', '--json', '--with-code'], {
            env: { ...process.env, ...this.environment },
            stdio: ['ignore', 'pipe', 'inherit'],
        });
        createInterface({ input: this.follower.stdout }).on('line', (line) =>
            this.recorded.push(JSON.parse(line)),
        );
    }

    run(...args) {
        const env = { ...process.env, ...this.environment };
        return execFileSync(this.program, args, {
            env,
            encoding: 'utf8',
            maxBuffer: 1 << 28,
            stdio: ['ignore', 'pipe', 'pipe'],
        });
    }

    status() {
        return JSON.parse(this.run('status', '--json'));
    }

    /** What was recorded by now. What was just done may be missing. */
    events() {
        return this.recorded;
    }

    /**
     * What is in the log now, without what was forgotten. This starts a process, so it is no look
     * to be repeated.
     */
    eventsInLog() {
        const lines = this.run('events', '--json', '--with-code').split('\n').filter(Boolean);
        return lines.map((line) => JSON.parse(line));
    }

    /** Moves the daemon's clock ahead. */
    advanceClock(ms) {
        this.run('advance-clock', String(ms));
    }

    /** The offer on screen has been there long enough to be read. */
    offerWasRead() {
        this.advanceClock(READING_MS);
    }

    /** What the model generated, oldest first. */
    completions() {
        return this.events().filter(({ event }) => event === 'completion');
    }

    /** The completions with a text to show. */
    offers() {
        return this.completions().filter(({ shown }) => shown !== '');
    }

    lastOffer() {
        return this.offers().at(-1);
    }

    /** The events of this kind that belong to one offer. */
    eventsOf(kind, offer) {
        return this.events().filter(({ event, id }) => event === kind && id === offer);
    }

    outcomes(offer) {
        const events = this.eventsOf('outcome', offer);
        return events.map(({ outcome, evidence }) => ({ ...outcome, evidence }));
    }

    dispose() {
        this.follower.kill();
        this.run('stop');
        rmSync(this.home, { recursive: true, force: true });
    }
}

/** Does the same for a value that a program is started for. */
export function eventuallyAsked(what, value, limitMs = LIMIT_MS) {
    return eventually(what, value, limitMs, ASK_MS);
}

/** Waits until `value` returns something truthy, and returns that. */
export async function eventually(what, value, limitMs = LIMIT_MS, pollMs = POLL_MS) {
    for (const end = Date.now() + limitMs; ; await sleep(pollMs)) {
        const now = await value();
        if (now) return now;
        if (Date.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    }
}
