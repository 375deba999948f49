// What a rehearsal that is to be adopted prints: how far it is, and what came of it.

/** The places that are typed. Three arms of so many take some hours on two cores. */
export const PLACES = 1000;

/** The places of one commit at most, so that the stream has commits enough to compare by. */
const PLACES_PER_COMMIT = 40;

/** The arguments of `hone` that rehearse on a folder and adopt what is worth it. */
export function rehearsal(folder: string, author: string | undefined, work: string): string[] {
    const chosen = author === undefined ? [] : ['--author', author];
    const amount = ['--limit', String(PLACES), '--per-commit', String(PLACES_PER_COMMIT)];
    return [
        ...['rehearse', '--repo', folder, ...chosen, ...amount],
        ...['--adopt', '--progress', '--work', work],
    ];
}

interface Line {
    arm: string;
    number: number;
    of_arms: number;
    places: number;
    of_places: number;
}

export class Rehearsal {
    private percent = 0;
    private readonly said: string[] = [];

    /** The next step of a progress bar, or `undefined` if the line brings none. */
    take(line: string): { increment: number; message: string } | undefined {
        const at = progressOf(line);
        if (!at) {
            this.said.push(line);
            return undefined;
        }
        const done = at.number - 1 + at.places / at.of_places;
        const percent = Math.min(100, Math.floor((100 * done) / at.of_arms));
        const increment = percent - this.percent;
        if (increment <= 0) return undefined;
        this.percent = percent;
        return { increment, message: `${percent} %` };
    }

    /** What was adopted, in the words of `hone`. */
    get adopted(): string {
        const from = this.said.findLastIndex((line) => line.startsWith('adopted: '));
        return this.said.slice(Math.max(from, 0)).join(' ').trim();
    }
}

function progressOf(line: string): Line | undefined {
    if (!line.startsWith('{')) return undefined;
    const found = JSON.parse(line) as Partial<Line>;
    const isWhole = found.number && found.of_arms && found.of_places;
    return isWhole && found.places !== undefined ? (found as Line) : undefined;
}
