// A page of a webview. It has no script and no network access, and only its own style by nonce.

import { randomBytes } from 'node:crypto';

/** 128 bits cannot be guessed. */
const NONCE_BYTES = 16;

const STYLE = `
body {
    font-family: var(--vscode-font-family);
    color: var(--vscode-foreground);
    max-width: 46rem;
    line-height: 1.5;
}
h1 { font-size: 1.5rem; font-weight: 600; }
h2 { font-size: 1.1rem; font-weight: 600; margin: 2rem 0 .5rem; }
table { border-collapse: collapse; }
td, th { text-align: left; padding: .15rem 1.5rem .15rem 0; vertical-align: top; }
th { white-space: nowrap; }
.good { color: var(--vscode-testing-iconPassed); }
.bad { color: var(--vscode-errorForeground); }
.warning { color: var(--vscode-editorWarning-foreground); }
`;

export function escape(text: string): string {
    return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** `body` is HTML. Whatever came from outside must have passed through `escape`. */
export function page(
    title: string,
    body: string,
    nonce = randomBytes(NONCE_BYTES).toString('base64'),
): string {
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'">
<title>${escape(title)}</title>
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<h1>${escape(title)}</h1>
${body}
</body>
</html>`;
}
