// Keeps one server running. It starts the server, checks that it is Hone, restarts it when it dies
// with a longer wait each time, and reports when it cannot. Nothing here knows the editor.

import { Backoff } from './backoff';
import type { Located } from './locate';
import type { ServerState } from './status';
import { serverProblem } from './version';

/** The parts of a language client that the supervisor needs. */
export interface Connection {
    start(): Promise<void>;
    /** Ends it. If it is still starting, `start` rejects soon. */
    dispose(): Promise<void>;
    readonly initializeResult?: { serverInfo?: { name: string; version?: string } } | undefined;
    /** The last line that the server wrote to stderr, which says why it ended. */
    readonly lastErrorLine: string | undefined;
}

export interface SupervisorHost<C> {
    locate(): Located;
    /**
     * Makes a connection that is not started yet. It calls `lost` when it ends although nobody
     * asked for it.
     */
    connect(path: string, lost: () => void): C;
    changed(state: ServerState): void;
}

export class Supervisor<C extends Connection> {
    private connection: C | undefined;
    private current: ServerState = { kind: 'stopped' };
    private readonly backoff = new Backoff();
    private restartTimer: NodeJS.Timeout | undefined;
    /** Is done when the last connection has come up or has failed. */
    private comingUp: Promise<void> = Promise.resolve();
    private restarts = 0;

    constructor(private readonly host: SupervisorHost<C>) {}

    get state(): ServerState {
        return this.current;
    }

    /** The connection, while the server answers. */
    get connected(): C | undefined {
        return this.current.kind === 'running' ? this.connection : undefined;
    }

    /** Starts the server anew, whatever its state is. */
    async restart(): Promise<void> {
        const restart = ++this.restarts;
        await this.stop();
        // A later call that waited meanwhile starts the server.
        if (restart !== this.restarts) return;
        this.backoff.reset();
        await this.start();
    }

    /**
     * Starts the server again after a failure, whose reason may have passed. Earlier deaths still
     * count, so that a server that keeps ending is not tried over and over.
     */
    async retry(): Promise<void> {
        if (this.state.kind !== 'failed') return;
        const ended = this.end();
        this.become({ kind: 'starting' });
        await ended;
        if (this.current.kind === 'starting' && !this.connection) await this.start();
    }

    async stop(): Promise<void> {
        const ended = this.end();
        this.become({ kind: 'stopped' });
        await ended;
    }

    private async end(): Promise<void> {
        clearTimeout(this.restartTimer);
        const connection = this.connection;
        this.connection = undefined;
        await endOf(connection);
        // Two that come up at once would register the same commands.
        await this.comingUp;
    }

    /**
     * `again` says that a server died before. Then the reason of a failure may pass, such as a
     * daemon that has not ended yet.
     */
    private async start(again = false): Promise<void> {
        const located = this.host.locate();
        if (located.path === undefined) {
            this.fail(located.problem);
            return;
        }
        const { path } = located;
        const connection: C = this.host.connect(path, () => this.lost(connection));
        this.connection = connection;
        this.become({ kind: 'starting' });
        const up = this.bringUp(connection);
        this.comingUp = up.catch(() => undefined);
        try {
            await up;
        } catch (error) {
            if (this.connection !== connection) return;
            if (again) this.startLater(connection);
            else this.fail(connection.lastErrorLine ?? (error as Error).message);
            return;
        }
        if (this.connection !== connection) return;
        const problem = serverProblem(connection.initializeResult?.serverInfo, path);
        if (problem) {
            await this.end();
            this.fail(problem);
            return;
        }
        this.become({ kind: 'running' });
    }

    /** Starts a connection. One that is no longer wanted once it is up is ended. */
    private async bringUp(connection: C): Promise<void> {
        await connection.start();
        if (this.connection !== connection) await endOf(connection);
    }

    private lost(connection: C): void {
        // `start` reports a connection that ends while it starts.
        if (this.connection === connection && this.current.kind === 'running') {
            this.startLater(connection);
        }
    }

    private startLater(connection: C): void {
        const delayMs = this.backoff.died(Date.now());
        if (delayMs === undefined) {
            const reason = connection.lastErrorLine ? ` (${connection.lastErrorLine})` : '';
            this.fail(`The server keeps ending${reason}; see the output channel "Hone"`);
            return;
        }
        this.become({ kind: 'starting' });
        this.restartTimer = setTimeout(() => {
            void endOf(connection);
            void this.start(true);
        }, delayMs);
    }

    private fail(problem: string): void {
        this.become({ kind: 'failed', problem });
    }

    private become(state: ServerState): void {
        this.current = state;
        this.host.changed(state);
    }
}

async function endOf(connection: Connection | undefined): Promise<void> {
    // A connection that never came up throws, because it has nothing to end.
    await connection?.dispose().catch(() => undefined);
}
