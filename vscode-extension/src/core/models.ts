// Reads `hone model list --json` and the lines of `hone model pull --json`.

const MIB = 1024 * 1024;

export interface Model {
    name: string;
    bytes: number;
    licence: string;
    /** Whether its file is on this machine. */
    present: boolean;
    configured: boolean;
}

export function parseModels(json: string): Model[] {
    const { models } = JSON.parse(json) as { models?: Model[] };
    if (!Array.isArray(models)) {
        throw new Error('`hone model list --json` printed something unexpected; update hone');
    }
    return models;
}

export function size({ bytes }: Model): string {
    return `${Math.round(bytes / MIB)} MiB`;
}

/** The progress of a download, line by line. */
export class Pull {
    private percent = 0;

    /** The next step of a progress bar, or `undefined` if the line brings none. */
    take(line: string): { increment: number; message: string } | undefined {
        const { bytes, total } = JSON.parse(line) as { bytes?: number; total?: number };
        if (bytes === undefined || !total) return undefined;
        const percent = Math.floor((100 * bytes) / total);
        const increment = percent - this.percent;
        if (increment <= 0) return undefined;
        this.percent = percent;
        return { increment, message: `${percent} %` };
    }
}
