// Decides whether the extension can talk to a server.

/** The first version of the server that knows the messages of this extension. */
export const MINIMUM_SERVER = '0.1.0';

/** What is wrong with this server, or `undefined` if nothing is. */
export function serverProblem(
    info: { name: string; version?: string } | undefined,
    path: string,
    minimum: string = MINIMUM_SERVER,
): string | undefined {
    if (info?.name !== 'hone') {
        return `${path} is not Hone's server; correct the setting hone.path`;
    }
    const version = numbers(info.version ?? '');
    const least = numbers(minimum);
    if (!version || !least) {
        return `${path} does not report its version; install Hone ${minimum} or later`;
    }
    for (const [at, part] of least.entries()) {
        const difference = (version[at] ?? 0) - part;
        if (difference > 0) return undefined;
        if (difference < 0) {
            const old = `${path}: Hone ${info.version} is too old for this extension`;
            return `${old}; install ${minimum} or later`;
        }
    }
    return undefined;
}

function numbers(version: string): number[] | undefined {
    const match = /^(\d+)\.(\d+)\.(\d+)/.exec(version);
    return match?.slice(1).map(Number);
}
