// Runs the program `hone` and reads what it prints.

import { execFile, spawn } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { createInterface } from 'node:readline';

/** A program that takes longer to answer hangs. */
export const ANSWER_LIMIT_MS = 20_000;

/**
 * What `hone` prints on stdout. An error carries its last line on stderr, which is written for
 * people.
 */
export function ask(path: string, args: readonly string[]): Promise<string> {
    return new Promise((resolve, reject) => {
        execFile(path, args, { timeout: ANSWER_LIMIT_MS }, (error, stdout, stderr) => {
            if (error) reject(new Error(lastLine(stderr) ?? error.message));
            else resolve(stdout);
        });
    });
}

export interface RunOptions {
    /** Ends the program. */
    signal?: AbortSignal;
    /** The program's environment; this process's own if left out. */
    env?: Record<string, string | undefined>;
    /** It gets what others leave of the processor. */
    isBackground?: boolean;
}

/** Runs `hone` to its end, however long that takes, and passes each line of stdout to `take`. */
export function run(
    path: string,
    args: readonly string[],
    take: (line: string) => void = () => undefined,
    options: RunOptions = {},
): Promise<void> {
    const { isBackground, ...rest } = options;
    return new Promise((resolve, reject) => {
        const child = spawn(path, args, { stdio: ['ignore', 'pipe', 'pipe'], ...rest });
        if (isBackground && child.pid !== undefined) lowerPriority(child.pid);
        let lastErrorLine: string | undefined;
        let failure: Error | undefined;
        const attempt = (line: string): void => {
            try {
                take(line);
            } catch (error) {
                failure ??= error as Error;
            }
        };
        createInterface({ input: child.stdout }).on('line', attempt);
        createInterface({ input: child.stderr }).on(
            'line',
            (line) => (lastErrorLine = lastLine(line) ?? lastErrorLine),
        );
        child.on('error', reject);
        child.on('close', (code) => {
            const ended = `${path} ${args.join(' ')}: ended with code ${code}, and said nothing`;
            if (code !== 0) reject(new Error(lastErrorLine ?? ended));
            else if (failure) reject(failure);
            else resolve();
        });
    });
}

/** A program that reads lines until they end. */
export interface Fed {
    write(line: string): void;
    /** Ends the lines. */
    end(): void;
    /** What it prints on stdout by its end. An error carries its last line on stderr. */
    printed: Promise<string>;
}

/** Runs `hone` and writes lines to it. */
export function feed(path: string, args: readonly string[]): Fed {
    const child = spawn(path, args, { stdio: 'pipe' });
    // The pipe breaks if the program ends early. Then it has said why.
    child.stdin.on('error', () => undefined);
    let [printed, said] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
    return {
        write: (line) => void child.stdin.write(`${line}\n`),
        end: () => void child.stdin.end(),
        printed: new Promise((resolve, reject) => {
            child.on('error', reject);
            child.on('close', (code) => {
                const ended = `${path} ${args.join(' ')}: ended with code ${code}`;
                if (code === 0) resolve(printed);
                else reject(new Error(lastLine(said) ?? ended));
            });
        }),
    };
}

function lowerPriority(pid: number): void {
    try {
        setPriority(pid, constants.priority.PRIORITY_LOW);
    } catch {
        // The program has ended already, or the system does not allow it.
    }
}

/** The last line that is not blank, without the `Error: ` at its start. */
export function lastLine(text: string): string | undefined {
    const line = text.split('\n').findLast((candidate) => candidate.trim() !== '');
    return line?.trim().replace(/^Error: /, '');
}
