// A command line for a terminal.

/** One argument, as every POSIX shell reads it back. */
export function quoted(argument: string): string {
    return /^[\w./:@-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
