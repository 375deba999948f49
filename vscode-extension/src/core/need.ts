// What is not there yet when Hone starts for the first time. That is no error.

import { NOT_FOUND } from './locate';

export type Need = 'program' | 'model';

/** What a problem of the server says is missing, if that is all. */
export function needOf(problem: string): Need | undefined {
    if (problem === NOT_FOUND) return 'program';
    return /is missing; run `hone model pull /.test(problem) ? 'model' : undefined;
}

/** A short text for the status bar. */
export const NEED_TEXT: Record<Need, string> = {
    program: 'The program hone is not installed yet',
    model: 'A model is needed',
};
