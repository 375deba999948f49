// What `hone learn --history` prints for programs: how far it is, and what came of it.

/** The arguments of `hone` that learn from the history of a folder. */
export function learnHistory(folder: string, author: string | undefined): string[] {
    const chosen = author === undefined ? [] : ['--author', author];
    return ['learn', '--history', folder, ...chosen, '--progress'];
}

interface Line {
    percent: number;
    doing: string;
}

export class HistoryLearning {
    private percent = 0;
    private readonly said: string[] = [];

    /** The next step of a progress bar, or `undefined` if the line brings none. */
    take(line: string): { increment: number; message: string } | undefined {
        const at = progressOf(line);
        if (!at) {
            this.said.push(line);
            return undefined;
        }
        const increment = Math.max(0, at.percent - this.percent);
        this.percent += increment;
        return { increment, message: `${this.percent} %, ${at.doing}` };
    }

    /** What came of it, in the words of `hone`. */
    get outcome(): string {
        return this.said.join(' ').trim();
    }
}

function progressOf(line: string): Line | undefined {
    if (!line.startsWith('{')) return undefined;
    const found = JSON.parse(line) as Partial<Line>;
    return typeof found.percent === 'number' && found.doing !== undefined
        ? (found as Line)
        : undefined;
}
