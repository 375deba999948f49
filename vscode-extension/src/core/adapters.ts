// What `hone adapter list --json` prints, as far as it is used here.

export interface Adapter {
    version: number;
    parent: number;
    /** Its file is still there. */
    kept: boolean;
    /** Unix milliseconds. */
    created_at: number;
    report: { episodes_used: number };
}

export interface Adapters {
    /** 0: the model alone. */
    active: number;
    /** Oldest first. */
    adapters: Adapter[];
}

export function parseAdapters(json: string): Adapters {
    const parsed = JSON.parse(json) as Partial<Adapters> | null;
    if (typeof parsed?.active !== 'number' || !Array.isArray(parsed.adapters)) {
        throw new Error('`hone adapter list --json` printed something else; update hone');
    }
    return { active: parsed.active, adapters: parsed.adapters };
}
