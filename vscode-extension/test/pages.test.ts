import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checks, doctorPage, type Findings } from '../src/core/doctor';
import { page } from '../src/core/html';
import type { Status } from '../src/core/protocol';
import { reportPage } from '../src/core/report';
import { acceptedOfJudged, learnerLine } from '../src/core/summary';

const STATUS: Status = {
    version: '0.1.0',
    paths: { log: '/home/ada/hone/logs/daemon.log' },
    daemon: { pid: 7, uptime_s: 60, sessions: 2 },
    model: { name: 'qwen<script>', path: '/home/ada/hone/models/qwen.gguf', backend: 'cpu' },
    adapter: { active: 1, updated_at: 5 },
    episodes: { total: 3, accepted: 2, rejected_edit: 1 },
    learner: {
        state: 'idle',
        updates: 1,
        last_update_ms: 900,
        last_error: null,
        waiting: 4,
        batch: 16,
        progress: null,
        held_back: null,
    },
};

test('a page allows nothing but its own style', () => {
    const html = page('T', '<p>x</p>', 'N0NCE');
    assert.match(html, /content="default-src 'none'; style-src 'nonce-N0NCE'"/);
    assert.match(html, /<style nonce="N0NCE">/);
    assert.doesNotMatch(html, /<script|https?:|style="|url\(/);
    assert.notEqual(page('T', ''), page('T', ''), 'a nonce is used once');
});

test('the report of hone is as dark as the editor, and loads nothing', () => {
    const html = '<html><head><style>@media (prefers-color-scheme: dark) {}</style></head></html>';
    assert.match(reportPage(html, true), /@media all \{/);
    assert.match(reportPage(html, false), /@media not all \{/);
    assert.match(reportPage(html, true), /<head>\n<meta http-equiv="Content-Security-Policy"/);
});

test('an offer without a verdict is neither accepted nor rejected', () => {
    const episodes = {
        total: 9,
        accepted: 1,
        typed_through: 1,
        rejected_esc: 2,
        superseded: 3,
        unseen: 1,
        unlabelled: 1,
    };
    assert.deepEqual(acceptedOfJudged({ ...STATUS, episodes }), { accepted: 2, judged: 4 });
});

test('the learner’s line says why enough labels wait', () => {
    const line = (learner: Partial<Status['learner']>): string =>
        learnerLine({ ...STATUS, learner: { ...STATUS.learner, ...learner } });
    assert.equal(line({}), '4 of 16 labels until the next update');
    assert.equal(
        line({ state: 'waiting', held_back: 'the machine runs on its battery' }),
        'Labels wait: the machine runs on its battery',
    );
    assert.equal(
        line({ state: 'training', held_back: 'x', progress: 'step 2' }),
        'Learning now: step 2',
    );
    assert.equal(line({ state: 'off' }), 'Learning is paused');
});

const HEALTHY: Findings = {
    located: { path: '/usr/bin/hone', source: 'PATH' },
    version: 'hone 0.1.0\n',
    machine: {
        checks: [
            { name: 'program', state: 'note', found: 'not on PATH', fix: 'add its folder' },
            { name: 'socket', state: 'good', found: 'private to you' },
            { name: 'GPU', state: 'good', found: 'none is used' },
        ],
    },
    server: { kind: 'running' },
    inlineSuggest: true,
    enabled: true,
    proposedApi: false,
};

const states = (found: Partial<Findings>): Record<string, string> =>
    Object.fromEntries(checks({ ...HEALTHY, ...found }).map(({ name, state }) => [name, state]));

test('if all is well, every check is good', () => {
    assert.deepEqual(new Set(Object.values(states({}))), new Set(['good']));
    assert.deepEqual(Object.keys(states({})), [
        'Program',
        'Version',
        'This window',
        'Editor',
        'Labels',
        'Socket',
        'GPU',
    ]);
});

test('everything that can be wrong is found', () => {
    assert.equal(states({ version: 'hone 0.0.1' })['Version'], 'bad');
    assert.equal(states({ version: undefined })['Version'], 'bad');
    assert.equal(states({ machine: { problem: 'it hangs' } })['This machine'], 'bad');
    assert.equal(states({ server: { kind: 'failed', problem: 'p' } })['This window'], 'bad');
    assert.equal(states({ inlineSuggest: false })['Editor'], 'bad');
    assert.equal(states({ enabled: false })['Editor'], 'warning');
    const missing = {
        located: { problem: 'not found' },
        version: undefined,
        machine: undefined,
    };
    assert.deepEqual(Object.keys(states(missing)), ['Program', 'This window', 'Editor', 'Labels']);
    assert.match(
        doctorPage(checks({ ...HEALTHY, ...missing })),
        /<td class="bad">✗<\/td><th>Program<\/th>/,
    );
});

test('of the program and the editors, only what is wrong is told', () => {
    const found = {
        checks: [
            { name: 'program', state: 'note' as const, found: 'not on PATH', fix: 'add it' },
            { name: 'program', state: 'wrong' as const, found: 'no hone-learner', fix: 'install' },
            { name: 'editors', state: 'good' as const, found: 'Neovim: starts this program' },
            { name: 'editors', state: 'wrong' as const, found: 'Neovim: starts no program' },
        ],
    };
    const told = checks({ ...HEALTHY, machine: found }).slice(-2);
    assert.deepEqual(told, [
        { name: 'Program', state: 'bad', detail: 'no hone-learner', fix: 'install' },
        { name: 'Editors', state: 'bad', detail: 'Neovim: starts no program' },
    ]);
});

test('what `hone doctor` finds is told with what to do about it', () => {
    const found = {
        checks: [
            { name: 'model', state: 'wrong' as const, found: 'a <b> is missing', fix: 'fetch it' },
            { name: 'speed', state: 'note' as const, found: 'half came within 2000 ms' },
        ],
    };
    const html = doctorPage(checks({ ...HEALTHY, machine: found }));
    assert.ok(
        html.includes(
            '<td class="bad">✗</td><th>Model</th><td>a &#60;b&#62; is missing<br>→ fetch it</td>',
        ),
        html,
    );
    assert.match(html, /<td class="warning">!<\/td><th>Speed<\/th><td>half came within 2000 ms</);
});
