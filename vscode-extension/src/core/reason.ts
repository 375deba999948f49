// Why a request for a completion ended as it did: as the server says it, or because this editor
// asked no server. Nothing here knows the editor.

/** What the server puts next to the items of an answer, as `_hone`. */
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

/** Reasons for which a request by hand brings what one as the user types does not. */
const HELD_BACK = new Set([
    'after_next_edit',
    'file_ignored',
    'held_back',
    'language_off',
    'off_in_editor',
    'prose_off',
    'rejected_here',
    'snoozed',
    'switched_off',
    'too_short',
    'too_unlikely',
]);

/** Whether something is shown if the user asks for it by hand. */
export function canShow({ reason }: Reason): boolean {
    return HELD_BACK.has(reason);
}

/** What this editor's own settings say of a document as its user types. */
export interface Switches {
    enabled: boolean;
    languageId: string;
    languageOn: boolean;
}

/** Why nothing is asked as the user types. Undefined if Hone is on. */
export function offReason({ enabled, languageId, languageOn }: Switches): Reason | undefined {
    if (!enabled) return off('Hone is off in this editor', 'Turn On or Off');
    if (languageOn) return undefined;
    return off(`Hone is off for ${languageId} in this editor`, 'Turn On or Off for This Language');
}

function off(what: string, command: string): Reason {
    return { reason: 'off_in_editor', sentence: `${what}; \`Hone: ${command}\` turns it on.` };
}

export const AFTER_NEXT_EDIT: Reason = {
    reason: 'after_next_edit',
    sentence: 'You have just made a next edit, and nothing is asked until you type.',
};

/** The reason of the last request, and the document that it was about. */
export class LastReason {
    private last: { document: string; reason: Reason | undefined } | undefined;

    note(document: string, reason: Reason | undefined): void {
        this.last = { document, reason };
    }

    /** The last request of another document says nothing about this one. */
    of(document: string | undefined): Reason | undefined {
        return this.last?.document === document ? this.last?.reason : undefined;
    }

    forget(): void {
        this.last = undefined;
    }
}
