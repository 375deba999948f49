// Brings offers to the editor and reports their outcomes to the server.
//
// With the proposed API `inlineCompletionsAdditions`, the editor reports what it showed and what
// the outcome was. Without it, registering those handlers throws. Then the keys of `keys.ts`
// report, and the server sees the rest in the document.

import * as vscode from 'vscode';
import { InlineCompletionRequest } from 'vscode-languageclient/node';
import { DOCUMENTS } from './client';
import { Changes, Offers, offerId, type Offer, type TextView } from './core/offers';
import { didPartiallyAccept, didReject, didShow, itemReference } from './core/protocol';
import { AFTER_NEXT_EDIT, LastReason, offReason, reasonOf, type Reason } from './core/reason';
import type { Server } from './server';
import { affects, isEnabled, isLanguageOn } from './settings';
import type { Thinking } from './core/status';

/** The settings that switch Hone on and off. */
const SWITCHES = ['enabled', 'languages'];

/** `InlineCompletionEndOfLifeReasonKind.Rejected` of the proposed API. */
const END_REJECTED = 1;

/** The handlers of the proposed API. The types of this build do not have them. */
interface ProposedHandlers {
    handleDidShowCompletionItem(item: vscode.InlineCompletionItem): void;
    handleDidPartiallyAcceptCompletionItem(
        item: vscode.InlineCompletionItem,
        taken: number | object,
    ): void;
    handleEndOfLifetime(item: vscode.InlineCompletionItem, reason: { kind: number }): void;
}

export class Provider implements vscode.InlineCompletionItemProvider, vscode.Disposable {
    readonly offers = new Offers();
    /** Whether the editor itself reports outcomes. */
    readonly proposedApi: boolean;
    private readonly subscriptions: vscode.Disposable[];
    private readonly shown = new Changes();
    private readonly rejected = new Changes();

    private readonly lastReason = new LastReason();
    private readonly askEmitter = new vscode.EventEmitter<vscode.TextDocument>();

    private readonly partEmitter = new vscode.EventEmitter<void>();

    /** Fires when a part of an offer was accepted. */
    readonly onPart = this.partEmitter.event;
    /** Fires when the editor asks for offers as the user types. */
    readonly onAsk = this.askEmitter.event;

    constructor(
        private readonly server: Server,
        private readonly thinking: Thinking,
        private readonly onReason: (reason: Reason) => void,
        private readonly isNextEdit: (document: vscode.TextDocument) => boolean,
    ) {
        const registered = register(this, {
            handleDidShowCompletionItem: (item) => this.reportShown(offerId(item)),
            // The editor calls this twice for each part, first with its length and then with an
            // object.
            handleDidPartiallyAcceptCompletionItem: (item, taken) => {
                if (typeof taken === 'number') this.reportPart(offerId(item), taken);
            },
            // The item's command reports acceptance, and an ignored offer has no verdict.
            handleEndOfLifetime: (item, { kind }) => {
                if (kind === END_REJECTED) this.reportRejected(offerId(item));
            },
        });
        // VS Code hides the offer without a report when only the cursor moves, and when the window
        // or the editor loses the focus.
        this.subscriptions = [
            registered.registration,
            vscode.window.onDidChangeTextEditorSelection(({ textEditor }) =>
                this.cursorIn(textEditor),
            ),
            vscode.window.onDidChangeActiveTextEditor((editor) => {
                this.lastReason.forget();
                if (editor) this.cursorIn(editor);
                else this.reportHidden(this.offers.hide());
            }),
            vscode.window.onDidChangeWindowState(({ focused }) => {
                if (!focused) this.reportHidden(this.offers.hide());
            }),
            vscode.workspace.onDidChangeConfiguration((event) => {
                if (SWITCHES.some((name) => affects(event, name))) this.lastReason.forget();
            }),
        ];
        this.proposedApi = registered.proposedApi;
    }

    async provideInlineCompletionItems(
        document: vscode.TextDocument,
        position: vscode.Position,
        context: vscode.InlineCompletionContext,
        token: vscode.CancellationToken,
    ): Promise<vscode.InlineCompletionItem[] | undefined> {
        const client = this.server.connected;
        if (!client) return undefined;
        const isInvoked = context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke;
        if (!isInvoked) this.askEmitter.fire(document);
        const silence = isInvoked ? undefined : this.silenceIn(document);
        if (silence) {
            // The status bar shows by itself that Hone is off.
            this.lastReason.note(document.uri.toString(), silence);
            return undefined;
        }
        const { version } = document;
        const done = this.thinking.begin();
        try {
            const params = client.code2ProtocolConverter.asInlineCompletionParams(
                document,
                position,
                context,
            );
            const answer = await client.sendRequest(InlineCompletionRequest.type, params, token);
            const items = await client.protocol2CodeConverter.asInlineCompletionResult(answer);
            const list = Array.isArray(items) ? items : (items?.items ?? []);
            this.noteReason(document, reasonOf(answer));
            if (token.isCancellationRequested) {
                // If the user typed on, the offer may still hold, and the next request decides.
                if (document.version === version && list[0]) this.reportHidden(offerId(list[0]));
                return undefined;
            }
            this.offers.replace(offersOf(list, document, position));
            return list;
        } catch {
            // The request was superseded, or the server has ended, which the status bar shows.
            return undefined;
        } finally {
            done();
        }
    }

    /** Why nothing is asked in this document as the user types. */
    private silenceIn(document: vscode.TextDocument): Reason | undefined {
        // Who goes from one next edit to another wants no completion where one was made.
        return offIn(document) ?? (this.isNextEdit(document) ? AFTER_NEXT_EDIT : undefined);
    }

    private noteReason(document: vscode.TextDocument, reason: Reason | undefined): void {
        // An answer may come after the user has gone to another document.
        if (document !== vscode.window.activeTextEditor?.document) return;
        this.lastReason.note(document.uri.toString(), reason);
        if (reason) this.onReason(reason);
    }

    /** Why the last request in the active document ended as it did, or why none is made. */
    reasonHere(): Reason | undefined {
        const document = vscode.window.activeTextEditor?.document;
        return document && (this.lastReason.of(document.uri.toString()) ?? offIn(document));
    }

    reportShown(id: string | undefined): void {
        if (id === undefined) return;
        this.offers.choose(id);
        if (!this.shown.isNew(id)) return;
        // Without the proposed API, the offers that VS Code shows by itself are not known here.
        const turnedTo = !this.proposedApi;
        void this.server.connected?.sendNotification(didShow, { ...itemReference(id), turnedTo });
    }

    reportPart(id: string | undefined, acceptedLength: number): void {
        if (id === undefined) return;
        void this.server.connected?.sendNotification(didPartiallyAccept, {
            ...itemReference(id),
            acceptedLength,
        });
        this.partEmitter.fire();
    }

    /** Both the Escape key and the proposed API may report a rejection. It is sent once. */
    reportRejected(id: string | undefined): void {
        if (id === undefined || !this.rejected.isNew(id)) return;
        void this.server.connected?.sendNotification(didReject, { id, reason: 'esc' });
    }

    /**
     * Reports that the offer is not on screen. Otherwise the server would take ten seconds without
     * an answer for a rejection.
     */
    private reportHidden(id: string | undefined): void {
        if (id === undefined) return;
        void this.server.connected?.sendNotification(didReject, { id, reason: 'hidden' });
    }

    private cursorIn(editor: vscode.TextEditor): void {
        const cursor = editor.document.offsetAt(editor.selection.active);
        this.reportHidden(this.offers.leftBehind(viewOf(editor.document), cursor));
    }

    dispose(): void {
        this.askEmitter.dispose();
        this.partEmitter.dispose();
        for (const subscription of this.subscriptions) subscription.dispose();
    }
}

function offIn({ languageId }: vscode.TextDocument): Reason | undefined {
    return offReason({
        enabled: isEnabled(),
        languageId,
        languageOn: isLanguageOn(languageId),
    });
}

function offersOf(
    items: readonly vscode.InlineCompletionItem[],
    document: vscode.TextDocument,
    position: vscode.Position,
): Offer[] {
    const uri = document.uri.toString();
    return items.flatMap((item) => {
        const [id, text] = [offerId(item), item.insertText];
        // Behind an entry of the suggestion list, the text begins where the entry does.
        const start = document.offsetAt(item.range?.start ?? position);
        return id !== undefined && typeof text === 'string' ? [{ id, uri, start, text }] : [];
    });
}

export function viewOf(document: vscode.TextDocument): TextView {
    return {
        uri: document.uri.toString(),
        slice: (start, end) =>
            document.getText(
                new vscode.Range(document.positionAt(start), document.positionAt(end)),
            ),
    };
}

function register(
    provider: Provider,
    handlers: ProposedHandlers,
): { registration: vscode.Disposable; proposedApi: boolean } {
    const stable: vscode.InlineCompletionItemProvider = {
        provideInlineCompletionItems: (...request) =>
            provider.provideInlineCompletionItems(...request),
    };
    const registering = (with_: vscode.InlineCompletionItemProvider): vscode.Disposable =>
        vscode.languages.registerInlineCompletionItemProvider(DOCUMENTS, with_);
    try {
        return {
            registration: registering({ ...stable, ...handlers } as typeof stable),
            proposedApi: true,
        };
    } catch {
        return { registration: registering(stable), proposedApi: false };
    }
}
