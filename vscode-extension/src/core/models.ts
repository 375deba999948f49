// Reads `hone model list --json` and the lines of `hone model pull --json`.

const MIB = 1024 * 1024;

export interface Model {
    name: string;
    bytes: number;
    licence: string;
    /** Whether its file is on this machine. */
    present: boolean;
    configured: boolean;
    /** How long a line takes on two cores, by an estimate; an older `hone` does not tell. */
    expected_line_ms?: number;
    /** Whether it is among the first to choose from; an older `hone` does not tell. */
    suggested?: boolean;
    /** Whether Hone learns on it; an older `hone` does not tell. */
    learns?: boolean;
}

export function parseModels(json: string): Model[] {
    const { models } = JSON.parse(json) as { models?: Model[] };
    if (!Array.isArray(models)) {
        throw new Error('`hone model list --json` printed something unexpected; update hone');
    }
    return models;
}

/** Those to choose from first, and all the others. */
export function bySuggestion(models: Model[]): { first: Model[]; others: Model[] } {
    return {
        first: models.filter((model) => model.suggested !== false),
        others: models.filter((model) => model.suggested === false),
    };
}

export function size({ bytes }: Model): string {
    return `${Math.round(bytes / MIB)} MiB`;
}

/** What a user weighs before choosing: size, speed, and whether it must be downloaded. */
export function description(model: Model): string {
    const parts = [size(model)];
    if (model.expected_line_ms !== undefined) {
        parts.push(`about ${(model.expected_line_ms / 1000).toFixed(1)} s a line on two cores`);
    }
    parts.push(model.present ? 'downloaded' : 'not downloaded yet');
    if (model.learns === false) parts.push('nothing is learned on it');
    return parts.join(', ');
}

/** The progress of a download, line by line. */
export class Pull {
    private percent = 0;

    /** The next step of a progress bar, or `undefined` if the line brings none. */
    take(line: string): { increment: number; message: string } | undefined {
        const { bytes, total } = JSON.parse(line) as { bytes?: number; total?: number };
        if (bytes === undefined || !total) return undefined;
        const percent = Math.floor((100 * bytes) / total);
        const increment = percent - this.percent;
        if (increment <= 0) return undefined;
        this.percent = percent;
        return { increment, message: `${percent} %` };
    }
}

/** The name of the model that `hone model add --json` has recognised a file as. */
export function addedModel(line: string): string | undefined {
    return (JSON.parse(line) as { name?: string }).name;
}

/** Where the user's editor says that downloads go through. */
export interface Route {
    /** VS Code's own setting `http.proxy`. */
    proxy: string;
    /** The setting `hone.mirror`. */
    mirror: string;
}

/** The variables that say whether a proxy is used, in the order in which `hone` reads them. */
const PROXIES = [
    'ALL_PROXY',
    'all_proxy',
    'HTTPS_PROXY',
    'https_proxy',
    'HTTP_PROXY',
    'http_proxy',
];

/**
 * The environment of a download. An editor that was started from a menu does not have the variables
 * of a shell, so its own settings take their place. A variable that is set wins over them.
 */
export function downloadEnvironment(
    own: Record<string, string | undefined>,
    { proxy, mirror }: Route,
): Record<string, string | undefined> {
    const environment = { ...own };
    if (proxy && !PROXIES.some((name) => own[name])) environment['HTTPS_PROXY'] = proxy;
    if (mirror && !own['HF_ENDPOINT']) environment['HF_ENDPOINT'] = mirror;
    return environment;
}
