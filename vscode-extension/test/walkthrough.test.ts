import assert from 'node:assert/strict';
import { test } from 'node:test';
import { completionEvents, STEPS, Ticks } from '../src/core/walkthrough';
import manifest from '../package.json';

/** VS Code, which reads the steps at some time and ticks them as contexts change from then on. */
class Editor {
    readonly ticked = new Set<string>();
    private readonly contexts = new Map<string, number>();
    private readonly lost = new Set<string>();
    private isRead = false;

    set(context: string, value: number): void {
        this.contexts.set(context, value);
        if (this.isRead) this.look((event) => !this.lost.has(event) && this.ticked.add(event));
    }

    readSteps(): void {
        this.isRead = true;
        this.look((event) => this.lost.add(event));
    }

    private look(found: (event: string) => void): void {
        for (const [context, value] of this.contexts) found(`onContext:${context} == ${value}`);
    }
}

function ticked(play: (ticks: Ticks, editor: Editor) => void): boolean {
    const editor = new Editor();
    play(new Ticks((context, value) => editor.set(context, value)), editor);
    return completionEvents('model').some((event) => editor.ticked.has(event));
}

test('a step is ticked whenever it was done, and whenever VS Code reads the steps', () => {
    assert.ok(
        ticked((ticks, editor) => {
            editor.readSteps();
            ticks.done('model');
        }),
    );
    assert.ok(
        ticked((ticks, editor) => {
            ticks.done('model');
            editor.readSteps();
            ticks.pageOpened();
        }),
    );
    assert.ok(
        ticked((ticks, editor) => {
            ticks.done('model');
            ticks.pageOpened();
            editor.readSteps();
            ticks.pageOpened();
        }),
        'a page of another kind was opened before',
    );
    assert.ok(!ticked((ticks) => ticks.done('model')));
    assert.ok(!ticked((ticks, editor) => (editor.readSteps(), ticks.done('server'))));
});

test('the manifest waits for the contexts that are set', () => {
    const steps = manifest.contributes.walkthroughs.flatMap(({ steps }) => steps);
    assert.deepEqual(
        steps.map(({ id, completionEvents }) => [id, completionEvents]),
        STEPS.map((step) => [step, completionEvents(step)]),
    );
});
