// Why a request for a completion ended as it did, as the server says it.

/** What the server puts beside the items of an answer, as `_hone`. */
export interface Reason {
    /** The name of the reason. */
    reason: string;
    /** The reason in a person's words. */
    sentence: string;
    /** The command that changes it, if there is one. */
    remedy?: string;
}

const OFFERS = new Set(['shown', 'typed_through']);

/** The reason of an answer. An older server gives none. */
export function reasonOf(answer: unknown): Reason | undefined {
    const { reason, sentence, remedy } =
        (answer as { _hone?: Partial<Reason> } | null | undefined)?._hone ?? {};
    if (typeof reason !== 'string' || typeof sentence !== 'string') return undefined;
    return { reason, sentence, ...(typeof remedy === 'string' && { remedy }) };
}

/** Whether something was offered. */
export function isOffer({ reason }: Reason): boolean {
    return OFFERS.has(reason);
}
