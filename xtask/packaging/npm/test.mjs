// Installs the packages for npm into an empty folder, without a network, and completes a line.
//
//   node test.mjs PACKAGES MODELS
//
// PACKAGES  the folder with the launcher's package and that for this machine
// MODELS    a folder with smollm2-135m
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import assert from 'node:assert/strict';

const [packages, models] = process.argv.slice(2).map((path) => resolve(path));
const folder = mkdtempSync(join(tmpdir(), 'hone-npm-'));
const home = join(folder, 'home');
const env = { ...process.env, HONE_HOME: home, npm_config_cache: join(folder, 'cache') };
const options = { cwd: folder, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] };
const npx = ['--no-install', 'hone'];

const files = readdirSync(packages).filter((name) => name.endsWith('.tgz'));
writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
const install = ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund'];
execFileSync('npm', [...install, ...files.map((name) => join(packages, name))], options);
assert.match(execFileSync('npx', [...npx, '--version'], options), /^hone \d/);

mkdirSync(join(home, 'models'), { recursive: true, mode: 0o700 });
for (const name of readdirSync(models)) {
    symlinkSync(join(models, name), join(home, 'models', name));
}
const settings = `model.name = "smollm2-135m"
gate.enabled = false
lab.min_token_probability = 0
lab.budget_ms = 120000
`;
writeFileSync(join(home, 'config.toml'), settings, { mode: 0o600 });

const server = spawn('npx', [...npx, 'lsp'], { ...options, stdio: ['pipe', 'pipe', 'inherit'] });
let said = Buffer.alloc(0);
const waiting = new Map();
server.stdout.on('data', (data) => {
    said = Buffer.concat([said, data]);
    for (;;) {
        const head = /^Content-Length: (\d+)\r\n(?:[^\r]+\r\n)*\r\n/.exec(said.toString('latin1'));
        if (!head || said.length < head[0].length + Number(head[1])) return;
        const end = head[0].length + Number(head[1]);
        const message = JSON.parse(said.subarray(head[0].length, end).toString());
        said = said.subarray(end);
        waiting.get(message.id)?.(message.result);
    }
});
function send(message) {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    server.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
function request(id, method, params) {
    return new Promise((answered) => {
        waiting.set(id, answered);
        send({ id, method, params });
    });
}

const text = 'def mean(values):\n    total = 0\n    for value in values:\n        total += ';
const textDocument = { uri: 'file:///mean.py', languageId: 'python', version: 1, text };
await request(1, 'initialize', { capabilities: {} });
send({ method: 'initialized', params: {} });
send({ method: 'textDocument/didOpen', params: { textDocument } });
const answer = await request(2, 'textDocument/inlineCompletion', {
    textDocument: { uri: textDocument.uri },
    position: { line: 3, character: 17 },
    context: { triggerKind: 2 },
});
assert.match(answer.items[0].insertText, /^value/);
console.log(`npx hone lsp: ${answer.items[0].insertText}`);
server.stdin.end();
const ended = await new Promise((end) => server.on('exit', end));
assert.equal(ended, 0, 'the program ends with its input, and its status is passed on');
execFileSync('npx', [...npx, 'stop'], options);

// Without the package of the machine, it says what is missing, and nothing on stdout.
const installed = join(folder, 'node_modules');
for (const name of readdirSync(installed).filter((name) => name.startsWith('hone-completion-'))) {
    rmSync(join(installed, name), { recursive: true });
}
assert.throws(() => execFileSync('npx', [...npx, 'lsp'], options), (error) => {
    assert.equal(error.stdout, '');
    return /is not installed; install hone-completion again/.test(error.stderr);
});
rmSync(folder, { recursive: true });
