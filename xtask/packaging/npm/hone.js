#!/usr/bin/env node
// Starts the program of this machine's own package, and prints nothing before it does.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');

// The report would look up the names of all open connections.
process.report.excludeNetwork = true;
const isMusl = () => !process.report.getReport().header.glibcVersionRuntime;
const system = process.platform === 'linux' && isMusl() ? 'alpine' : process.platform;
const name = `hone-completion-${system}-${process.arch}`;
const ending = process.platform === 'win32' ? '.exe' : '';

function fail(why) {
    console.error(`hone: ${why}`);
    process.exit(1);
}

let program;
try {
    program = require.resolve(`${name}/bin/hone${ending}`);
} catch {
    fail(
        `the package ${name} is not installed; install hone-completion again, without ` +
            '--omit=optional and without the lock file of another machine',
    );
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
child.on('error', (error) => fail(`${program}: cannot be started: ${error.message}`));
child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
// A terminal sends this one to both.
process.on('SIGINT', () => {});
for (const signal of ['SIGTERM', 'SIGHUP']) {
    process.on(signal, () => child.kill(signal));
}
