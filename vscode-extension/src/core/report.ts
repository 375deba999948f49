// The page of `hone report --html` as a page of the editor.

/** The page has no script and needs no network, and its charts have styles of their own. */
const POLICY =
    '<meta http-equiv="Content-Security-Policy" ' +
    `content="default-src 'none'; style-src 'unsafe-inline'">`;

/** Where the page is dark. In a browser the system decides, in the editor its theme. */
const DARK = '(prefers-color-scheme: dark)';

/** Adapts the page to the editor: to its theme, and so that it can load nothing. */
export function reportPage(html: string, isDark: boolean): string {
    return html.replace('<head>', `<head>\n${POLICY}`).replace(DARK, isDark ? 'all' : 'not all');
}
