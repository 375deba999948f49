// Replaces VS Code's native logger, which no package brings as a binary. Without a logger VS Code
// writes no logs.
const { appendFileSync, mkdirSync } = require('node:fs');
const { dirname } = require('node:path');

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error'];

class Logger {
    constructor(file) {
        this.file = file;
        this.least = 0;
        this.form = (level, message) => message;
        for (const [at, level] of LEVELS.entries()) {
            this[level] = (message) =>
                at >= this.least && appendFileSync(file, this.form(level, message));
        }
    }

    setLevel(level) {
        this.least = level;
    }

    setPattern() {
        this.form = (level, message) => `[${level}] ${message}\n`;
    }

    clearFormatters() {}

    flush() {}

    drop() {}
}

exports.setFlushOn = () => undefined;
exports.createAsyncRotatingLogger = async (_name, file) => {
    mkdirSync(dirname(file), { recursive: true });
    return new Logger(file);
};
