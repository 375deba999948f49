// What this window knows about the offer on screen. That is enough to name the offer when the user
// accepts a part or rejects it, and to report only once that it was shown.

export interface Offer {
    id: string;
    uri: string;
    /** UTF-16 offset in the document at which the text is inserted. */
    start: number;
    text: string;
}

/** The parts of a document that offers need. */
export interface TextView {
    uri: string;
    slice(start: number, end: number): string;
}

/** The offer's id, which the server puts into the item's command. */
export function offerId(item: { command?: { arguments?: unknown[] } }): string | undefined {
    const id = item.command?.arguments?.[0];
    return typeof id === 'string' ? id : undefined;
}

/** Filters repeated reports, because several signals of the editor can mean the same thing. */
export class Changes {
    private last: string | undefined;

    isNew(id: string): boolean {
        const before = this.last;
        this.last = id;
        return id !== before;
    }
}

export class Offers {
    /** The offers to choose from at one place. */
    private choice: readonly Offer[] = [];
    private chosen = 0;

    private get live(): Offer | undefined {
        return this.choice[this.chosen];
    }

    /** Replaces the offers. The one on screen stays chosen if it is among the new ones. */
    replace(choice: readonly Offer[]): void {
        const stays = choice.findIndex(({ id }) => id === this.live?.id);
        this.choice = choice;
        this.chosen = Math.max(stays, 0);
    }

    /** Records which offer is on screen now. */
    choose(id: string): void {
        const at = this.choice.findIndex((offer) => offer.id === id);
        if (at >= 0) this.chosen = at;
    }

    /** Moves to the next offer, or with -1 to the previous one. Returns its id. */
    step(by: 1 | -1): string | undefined {
        const { length } = this.choice;
        this.chosen = length === 0 ? 0 : (this.chosen + by + length) % length;
        return this.live?.id;
    }

    /** Forgets the offers once the outcome is known. */
    clear(): void {
        this.replace([]);
    }

    /** Forgets the live offer and returns its id, because the editor hides it. */
    hide(): string | undefined {
        const id = this.live?.id;
        this.clear();
        return id;
    }

    /** Forgets the live offer and returns its id, if the cursor has left it. */
    leftBehind(view: TextView, cursor: number): string | undefined {
        return this.at(view, cursor) ? undefined : this.hide();
    }

    /** The live offer, if its text still continues the text before the cursor. */
    at(view: TextView, cursor: number): { offer: Offer; rest: string } | undefined {
        const offer = this.live;
        if (!offer || offer.uri !== view.uri || cursor < offer.start) return undefined;
        const typed = view.slice(offer.start, cursor);
        if (typed.length >= offer.text.length || !offer.text.startsWith(typed)) return undefined;
        return { offer, rest: offer.text.slice(typed.length) };
    }
}

/**
 * How many UTF-16 units of the offer are now before the cursor, if they are a part and not the
 * whole.
 */
export function partAccepted(offer: Offer, view: TextView, cursor: number): number | undefined {
    if (offer.uri !== view.uri || cursor <= offer.start) return undefined;
    const part = view.slice(offer.start, cursor);
    return part.length < offer.text.length && offer.text.startsWith(part) ? part.length : undefined;
}
