// A first file to press Tab in. The function before the cursor says so clearly what comes behind it
// that the smallest model knows it too.

export interface Scratch {
    /** The language's identifier in VS Code. */
    languageId: string;
    /** Its name for people. */
    name: string;
    /** The text up to the cursor, and behind it. */
    before: string;
    after: string;
}

/** What the first line says, behind the characters that begin a comment. */
const ADVICE = 'Grey text is an offer: Tab accepts it, Escape rejects it, typing continues.';

function scratch(
    languageId: string,
    name: string,
    comment: string,
    before: string,
    after = '',
): Scratch {
    return { languageId, name, before: `${comment} ${ADVICE}\n\n${before}`, after };
}

export const SCRATCHES: readonly Scratch[] = [
    scratch(
        'python',
        'Python',
        '#',
        'def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):\n    return',
        '\n',
    ),
    scratch(
        'typescript',
        'TypeScript',
        '//',
        'function add(a: number, b: number): number {\n    return a + b;\n}\n\n' +
            'function subtract(a: number, b: number): number {\n    return',
        '\n}\n',
    ),
    scratch(
        'javascript',
        'JavaScript',
        '//',
        'function add(a, b) {\n    return a + b;\n}\n\nfunction subtract(a, b) {\n    return',
        '\n}\n',
    ),
    scratch(
        'rust',
        'Rust',
        '//',
        'fn add(a: i32, b: i32) -> i32 {\n    return a + b;\n}\n\n' +
            'fn subtract(a: i32, b: i32) -> i32 {\n    return',
        '\n}\n',
    ),
    scratch(
        'go',
        'Go',
        '//',
        'package main\n\nfunc add(a, b int) int {\n\treturn a + b\n}\n\n' +
            'func subtract(a, b int) int {\n\treturn',
        '\n}\n',
    ),
    scratch(
        'java',
        'Java',
        '//',
        'class Numbers {\n    static int add(int a, int b) {\n        return a + b;\n    }\n\n' +
            '    static int subtract(int a, int b) {\n        return',
        '\n    }\n}\n',
    ),
    scratch(
        'cpp',
        'C++',
        '//',
        'int add(int a, int b) {\n    return a + b;\n}\n\nint subtract(int a, int b) {\n    return',
        '\n}\n',
    ),
];

/** The scratch files, the one for this language first. */
export function scratchesFor(languageId: string | undefined): readonly Scratch[] {
    const isFirst = (one: Scratch): boolean => one.languageId === languageId;
    return [...SCRATCHES.filter(isFirst), ...SCRATCHES.filter((one) => !isFirst(one))];
}

/** The cursor's place, with lines and characters counted from 0. */
export function cursor({ before }: Scratch): { line: number; character: number } {
    const lines = before.split('\n');
    return { line: lines.length - 1, character: lines.at(-1)!.length };
}
