// How fast the person of a picture types, reads and looks.

export const KEY_MS = 75;
/** How long somebody looks at an offer before they decide. */
export const READ_MS = 1_000;
/** How long VS Code shows that key. Meanwhile nothing else is typed, so that it goes away. */
export const KEY_SHOWN_MS = 600;
/** How long the last frame stands. */
export const END_MS = 3_000;
