// What this window knows about the offer on screen: enough to name it when the
// user takes a part or turns it down, and to report each sight of it once.

export interface Offer {
    id: string;
    uri: string;
    /** UTF-16 offset in the document at which the text goes in. */
    start: number;
    text: string;
}

/** As much of a document as offers need. */
export interface TextView {
    uri: string;
    slice(start: number, end: number): string;
}

/** What the suggest widget has selected: it would replace the text from `start` on. */
export interface Selected {
    start: number;
    text: string;
}

/** The id that the server put into an item's command. */
export function offerId(item: { command?: { arguments?: unknown[] } }): string | undefined {
    const id = item.command?.arguments?.[0];
    return typeof id === 'string' ? id : undefined;
}

/** Passes over what was just said: several of the editor's signals tell of one thing. */
export class Changes {
    private last: string | undefined;

    isNew(id: string): boolean {
        const before = this.last;
        this.last = id;
        return id !== before;
    }
}

export class Offers {
    /** What there is to choose from at one place. */
    private choice: readonly Offer[] = [];
    private chosen = 0;

    private get live(): Offer | undefined {
        return this.choice[this.chosen];
    }

    /** What stood on screen stays there, if it is among them. */
    served(choice: readonly Offer[]): void {
        const stays = choice.findIndex(({ id }) => id === this.live?.id);
        this.choice = choice;
        this.chosen = Math.max(stays, 0);
    }

    /** This one is on screen now. */
    choose(id: string): void {
        const at = this.choice.findIndex((offer) => offer.id === id);
        if (at >= 0) this.chosen = at;
    }

    /** The next one, or with -1 the previous, is on screen now: its id. */
    step(by: 1 | -1): string | undefined {
        const { length } = this.choice;
        this.chosen = length === 0 ? 0 : (this.chosen + by + length) % length;
        return this.live?.id;
    }

    /** The offer's fate is known. */
    clear(): void {
        this.served([]);
    }

    /** Forgets the live offer; its id, if it is not what stands at this cursor. */
    leftBehind(view: TextView, cursor: number): string | undefined {
        if (!this.live || this.at(view, cursor)) return undefined;
        const { id } = this.live;
        this.clear();
        return id;
    }

    /** The live offer, if its text still continues what stands before the cursor. */
    at(view: TextView, cursor: number): { offer: Offer; rest: string } | undefined {
        const offer = this.live;
        if (!offer || offer.uri !== view.uri || cursor < offer.start) return undefined;
        const typed = view.slice(offer.start, cursor);
        if (typed.length >= offer.text.length || !offer.text.startsWith(typed)) return undefined;
        return { offer, rest: offer.text.slice(typed.length) };
    }

    /**
     * While the suggest widget has an item selected, VS Code shows only an offer that goes on
     * from it. Any other would be served, never seen, and judged all the same.
     */
    extends(view: TextView, cursor: number, selected: Selected): boolean {
        const here = this.at(view, cursor);
        if (!here) return false;
        const result = view.slice(selected.start, cursor) + here.rest;
        return result.startsWith(selected.text);
    }
}

/** UTF-16 units of the offer that now stand before the cursor, if that is a part of it. */
export function partAccepted(offer: Offer, view: TextView, cursor: number): number | undefined {
    if (offer.uri !== view.uri || cursor <= offer.start) return undefined;
    const acceptedPart = view.slice(offer.start, cursor);
    return acceptedPart.length < offer.text.length && offer.text.startsWith(acceptedPart) ? acceptedPart.length : undefined;
}
