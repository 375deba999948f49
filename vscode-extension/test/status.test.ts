import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { NOT_FOUND } from '../src/core/locate';
import { Thinking, isLoading, statusItem, type StatusInputs } from '../src/core/status';

const READY: StatusInputs = {
    server: { kind: 'running' },
    line: { busy: false, kind: 'Normal', message: 'qwen, adapter v3' },
    paused: false,
    thinking: false,
    enabled: true,
    languageOff: undefined,
};

test('the status bar says why nothing is shown', () => {
    const silence = { reason: 'too_unlikely', sentence: 'The model was not sure.' };
    const { state, tooltip } = statusItem({ ...READY, silence });
    assert.equal(state, 'ready');
    assert.equal(tooltip, 'qwen, adapter v3\nNothing is shown here: The model was not sure.');
    const snoozed = { reason: 'snoozed', sentence: 'Completions are paused until 12:30.' };
    assert.equal(statusItem({ ...READY, silence: snoozed }).state, 'snoozed');
});

test('the status bar shows the most important thing', () => {
    const state = (known: Partial<StatusInputs>): string =>
        statusItem({ ...READY, ...known }).state;
    assert.equal(state({}), 'ready');
    assert.equal(statusItem(READY).tooltip, 'qwen, adapter v3');
    assert.equal(state({ thinking: true }), 'thinking');
    const learning = { busy: true, kind: 'Normal', message: 'learning' } as const;
    assert.equal(state({ line: learning }), 'learning');
    assert.equal(state({ line: learning, thinking: true }), 'thinking');
    assert.equal(state({ paused: true }), 'paused');
    assert.equal(
        state({ line: learning, paused: true }),
        'learning',
        'an update under way is finished',
    );
    assert.equal(state({ paused: true, thinking: true }), 'thinking');
    assert.equal(state({ line: { busy: false, kind: 'Warning', message: 'w' } }), 'warning');
    assert.equal(
        state({ line: { busy: false, kind: 'Error', message: 'e' }, thinking: true }),
        'error',
    );
    assert.equal(state({ languageOff: 'rust', thinking: true }), 'off');
    assert.equal(state({ server: { kind: 'starting' } }), 'starting');
    const loading = { busy: true, kind: 'Normal', message: 'loading the model' } as const;
    assert.equal(state({ line: loading, thinking: true }), 'starting');
    assert.equal(state({ enabled: false, server: { kind: 'starting' } }), 'off');
    assert.equal(state({ enabled: false, server: { kind: 'failed', problem: 'p' } }), 'error');
    const problem = '/h/models/m.gguf is missing; run `hone model pull m`';
    const first = statusItem({ ...READY, server: { kind: 'failed', problem } });
    assert.deepEqual([first.state, first.tooltip], ['needed', 'A model is needed']);
    const damaged = '/h/models/m.gguf is damaged or another file; run `hone model pull m`';
    assert.equal(state({ server: { kind: 'failed', problem: damaged } }), 'error');
    assert.equal(state({ server: { kind: 'failed', problem: NOT_FOUND } }), 'needed');
});

test('a model is loading until the server says something else', () => {
    const line = { busy: true, kind: 'Normal', message: 'loading the model' } as const;
    assert.equal(isLoading(line), true);
    assert.equal(isLoading({ ...line, busy: false, message: 'qwen' }), false);
    assert.equal(isLoading({ ...line, message: 'learning' }), false);
    assert.equal(isLoading(undefined), false);
});

test('a quick answer causes no flicker, and a slow one shows until the last request ends', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const said: boolean[] = [];
    const thinking = new Thinking((on) => said.push(on));
    const quick = thinking.begin();
    mock.timers.tick(149);
    quick();
    mock.timers.tick(1_000);
    assert.deepEqual(said, []);

    const [slow, slower] = [thinking.begin(), thinking.begin()];
    mock.timers.tick(150);
    assert.deepEqual(said, [true]);
    slow();
    slow();
    assert.deepEqual(said, [true], 'one is still under way, however often the other ends');
    slower();
    assert.deepEqual(said, [true, false]);
    mock.timers.reset();
});
