// Hone with a home of its own: what the daemon logged is what the tests assert on.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 50;

/**
 * More labels than all stories make: an update begins when one asks for it, and disturbs no other.
 * Little to compute, by one thread, and time for it: the machine may have other things to do.
 */
const settings = (model) => `
[model]
name = "${model}"
threads = 1
[completion]
prefix_chars = 400
budget_ms = 60000
min_probability = 0
[gate]
enabled = false
[learning]
trial = false
batch_episodes = 1000
`;

export class Hone {
    constructor(bin, models, model) {
        this.program = join(bin, 'hone');
        // Short, because a socket's path must be.
        this.home = mkdtempSync(join(tmpdir(), 'hone-'));
        mkdirSync(join(this.home, 'models'));
        for (const file of readdirSync(models)) symlinkSync(join(models, file), join(this.home, 'models', file));
        writeFileSync(join(this.home, 'config.toml'), settings(model));
        this.log = join(this.home, 'logs/daemon.log');
        this.environment = { HONE_HOME: this.home };
    }

    run(...args) {
        const env = { ...process.env, HONE_HOME: this.home };
        return execFileSync(this.program, args, { env, encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'] });
    }

    status() {
        return JSON.parse(this.run('status', '--json'));
    }

    events() {
        return this.run('events', '--json', '--with-code').split('\n').filter(Boolean).map((line) => JSON.parse(line));
    }

    /** The newest offer. */
    lastOffer() {
        return this.events().findLast((event) => event.event === 'completion' && event.shown !== '');
    }

    outcomes(id) {
        return this.events().filter((event) => event.event === 'outcome' && event.id === id).map(({ outcome, evidence }) => ({ ...outcome, evidence }));
    }

    count(event, id) {
        return this.events().filter((candidate) => candidate.event === event && candidate.id === id).length;
    }

    dispose() {
        this.run('stop');
        rmSync(this.home, { recursive: true, force: true });
    }
}

/** What `value` gives once it is truthy. */
export async function eventually(what, value, limit_ms = 30_000) {
    for (const end = Date.now() + limit_ms; ; await sleep(POLL_MS)) {
        const now = await value();
        if (now) return now;
        if (Date.now() > end) throw new Error(`not within ${limit_ms} ms: ${what}`);
    }
}
