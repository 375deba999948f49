// Reads what `hone adapter list --json` prints, as far as the extension uses it.

/** The version that stands for the base model without an adapter. */
export const BASE = 0;

export interface Adapter {
    version: number;
    /** The version that the update started from. */
    parent: number;
    /** Whether its file is still there. */
    kept: boolean;
    /** Unix milliseconds. */
    created_at: number;
    report: { episodes_used: number };
}

export interface Adapters {
    /** The version that serves. */
    active: number;
    /** Oldest first. */
    adapters: Adapter[];
}

export function parseAdapters(json: string): Adapters {
    const parsed = JSON.parse(json) as Partial<Adapters> | null;
    if (typeof parsed?.active !== 'number' || !Array.isArray(parsed.adapters)) {
        throw new Error('`hone adapter list --json` printed something unexpected; update hone');
    }
    return { active: parsed.active, adapters: parsed.adapters };
}
