// `hone model list`, read.

export interface Model {
    name: string;
    size: string;
    licence: string;
    /** `yes`, `no`, `damaged`, or how far a pull has come, as `12 %`. */
    here: string;
    configured: boolean;
}

const COLUMNS = ['name', 'template', 'size', 'licence', 'here'] as const;

/** Reads the table by the places of its headings: a cell may hold spaces. */
export function parseModels(table: string): Model[] {
    const [header = '', ...rows] = table.split('\n').filter((line) => line.trim() !== '');
    const starts = COLUMNS.map((column) => header.search(new RegExp(`\\b${column}\\b`)));
    if (starts.some((start) => start < 0)) throw new Error('hone model list: not the table that was expected');
    return rows.map((row) => {
        const cell = (column: (typeof COLUMNS)[number]): string => {
            const at = COLUMNS.indexOf(column);
            return row.slice(starts[at], starts[at + 1]).trim();
        };
        const configured = row.slice(0, starts[0]).trim() !== '';
        return { name: cell('name'), size: cell('size'), licence: cell('licence'), here: cell('here'), configured };
    });
}

/** How much of a model is here, in percent. */
export function percentHere(model: Model): number {
    if (model.here === 'yes') return 100;
    const match = /^(\d+) %$/.exec(model.here);
    return match ? Number(match[1]) : 0;
}
