// Builds a command line for a terminal.

/** One argument, quoted so that every POSIX shell reads it back unchanged. */
export function quoted(argument: string): string {
    return /^[\w./:@-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
