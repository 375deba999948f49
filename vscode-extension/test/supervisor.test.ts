import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Supervisor, type Connection } from '../src/core/supervisor';

/** A server that does what the test says. */
class Fake implements Connection {
    initializeResult: Connection['initializeResult'];
    lastErrorLine: string | undefined;
    /** How often it was ended. */
    disposals = 0;
    /** Ends the start, if it takes long. */
    private endStart: () => void = () => undefined;

    constructor(
        readonly die: () => void,
        version: string,
        private readonly refusal?: string,
        private readonly slow?: Slow,
    ) {
        this.initializeResult = { serverInfo: { name: 'hone', version } };
        this.lastErrorLine = refusal;
    }

    async start(): Promise<void> {
        if (this.refusal !== undefined) throw new Error('ended');
        if (this.slow === undefined) return;
        await new Promise<void>((resolve, reject) => {
            this.endStart = this.slow === 'comes up' ? resolve : reject;
        });
    }

    async dispose(): Promise<void> {
        this.disposals += 1;
        this.endStart();
    }
}

/** What becomes of a start that takes long when the server is ended meanwhile. */
type Slow = 'fails' | 'comes up';

interface Options {
    version?: string;
    refusal?: string;
    missing?: boolean;
    slow?: Slow;
}

function supervised(options: Options = {}) {
    const started: Fake[] = [];
    const said: string[] = [];
    const supervisor = new Supervisor<Fake>({
        locate: () =>
            options.missing ? { problem: 'not found' } : { path: '/bin/hone', source: 'PATH' },
        connect: (_path, lost) => {
            const { version = '0.1.0', refusal, slow } = options;
            const fake = new Fake(lost, version, refusal, slow);
            started.push(fake);
            return fake;
        },
        changed: (state) => said.push(state.kind === 'failed' ? state.problem : state.kind),
    });
    return { supervisor, started, said, options };
}

/** Lets code that waits for a promise continue. The timers stand still. */
async function settled(): Promise<void> {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

test('a server that dies is restarted, each time later, and in the end no more', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    const { supervisor, started, said } = supervised();
    await supervisor.restart();
    assert.deepEqual(said, ['stopped', 'starting', 'running']);
    for (const delayMs of [500, 1_000, 2_000, 4_000, 8_000]) {
        const before = started.length;
        started.at(-1)?.die();
        assert.equal(supervisor.connected, undefined, 'nothing is sent to a dead one');
        mock.timers.tick(delayMs - 1);
        await settled();
        assert.equal(started.length, before, `not before ${delayMs} ms`);
        mock.timers.tick(1);
        await settled();
        assert.equal(started.length, before + 1);
        assert.equal(supervisor.connected, started.at(-1));
        assert.equal(started.at(-2)?.disposals, 1);
    }
    started.at(-1)?.die();
    assert.deepEqual(supervisor.state, {
        kind: 'failed',
        problem: 'The server keeps ending; see the output channel "Hone"',
    });
    mock.timers.tick(60_000);
    await settled();
    assert.equal(started.length, 6);

    await supervisor.restart();
    assert.notEqual(supervisor.connected, undefined, 'the user may always ask for another');
    started.at(-1)?.die();
    assert.equal(supervisor.state.kind, 'starting', 'and the earlier deaths are forgotten');
    mock.timers.reset();
});

test('a start that fails reports the last line of the server and is not tried again', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { supervisor, started } = supervised({ refusal: 'no model; run `hone model pull`' });
    await supervisor.restart();
    assert.deepEqual(supervisor.state, {
        kind: 'failed',
        problem: 'no model; run `hone model pull`',
    });
    mock.timers.tick(60_000);
    await settled();
    assert.equal(started.length, 1);
    mock.timers.reset();
});

test('after a death, a start that fails is tried again, because the reason may pass', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    const { supervisor, started, options } = supervised();
    await supervisor.restart();
    options.refusal = 'the old daemon has not ended yet';
    started[0]?.die();
    mock.timers.tick(500);
    await settled();
    assert.equal(supervisor.state.kind, 'starting');
    delete options.refusal;
    mock.timers.tick(1_000);
    await settled();
    assert.equal(supervisor.state.kind, 'running');
    mock.timers.reset();
});

test('a server that is too old is stopped and reported', async () => {
    const { supervisor, started } = supervised({ version: '0.0.9' });
    await supervisor.restart();
    const problem = '/bin/hone: Hone 0.0.9 is too old for this extension; install 0.1.0 or later';
    assert.deepEqual(supervisor.state, { kind: 'failed', problem });
    assert.equal(started[0]?.disposals, 1);
    assert.equal(supervisor.connected, undefined);
});

test('without a program nothing is started', async () => {
    const { supervisor, started } = supervised({ missing: true });
    await supervisor.restart();
    assert.deepEqual(supervisor.state, { kind: 'failed', problem: 'not found' });
    assert.equal(started.length, 0);
});

test('a server that is stopped while a restart waits stays stopped', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    const { supervisor, started } = supervised();
    await supervisor.restart();
    started[0]?.die();
    await supervisor.stop();
    mock.timers.tick(60_000);
    await settled();
    assert.equal(supervisor.state.kind, 'stopped');
    assert.equal(started.length, 1);
    mock.timers.reset();
});

test('a server whose start failed starts at a retry once the reason has passed', async () => {
    const { supervisor, started, said, options } = supervised({ missing: true });
    await supervisor.restart();
    await supervisor.retry();
    assert.equal(started.length, 0);
    delete options.missing;
    options.refusal = 'no model';
    await supervisor.retry();
    assert.deepEqual(supervisor.state, { kind: 'failed', problem: 'no model' });
    delete options.refusal;
    await supervisor.retry();
    assert.equal(supervisor.connected, started[1]);
    assert.equal(started[0]?.disposals, 1, 'the one that failed is cleared away');
    assert.equal(said.filter((kind) => kind === 'stopped').length, 1, 'nobody asked for an end');
});

test('only a server that has failed is tried again', async () => {
    const { supervisor, started } = supervised();
    await supervisor.retry();
    assert.equal(started.length, 0, 'the user stopped it');
    await supervisor.restart();
    await supervisor.retry();
    assert.equal(started.length, 1, 'it runs');
});

test('a server that keeps ending is tried once more at a time', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    const { supervisor, started } = supervised();
    await supervisor.restart();
    for (let death = 0; death < 6; death += 1) {
        started.at(-1)?.die();
        mock.timers.tick(8_000);
        await settled();
    }
    assert.equal(supervisor.state.kind, 'failed');
    const before = started.length;
    await supervisor.retry();
    started.at(-1)?.die();
    assert.equal(supervisor.state.kind, 'failed');
    assert.equal(started.length, before + 1);
    mock.timers.reset();
});

test('a retry does not start a second server next to the one that the user asks for', async () => {
    const { supervisor, started, options } = supervised({ refusal: 'no model' });
    await supervisor.restart();
    delete options.refusal;
    await Promise.all([supervisor.retry(), supervisor.restart()]);
    assert.equal(started.length, 2);
    assert.equal(supervisor.connected, started[1]);
});

test('a server that is restarted while it starts is ended first, however often', async () => {
    const options: Options = { slow: 'fails' };
    const { supervisor, started } = supervised(options);
    const first = supervisor.restart();
    await settled();
    assert.equal(supervisor.state.kind, 'starting');
    delete options.slow;
    await Promise.all([first, supervisor.restart(), supervisor.restart()]);
    assert.equal(started[0]?.disposals, 1);
    assert.equal(started.length, 2, 'one server is enough for both');
    assert.equal(supervisor.connected, started[1]);
});

test('a server that comes up although nobody wants it any more is ended then', async () => {
    const { supervisor, started } = supervised({ slow: 'comes up' });
    const start = supervisor.restart();
    await settled();
    await Promise.all([supervisor.stop(), start]);
    assert.equal(supervisor.state.kind, 'stopped');
    assert.equal(started[0]?.disposals, 2);
});
