// Where the programs of a package lie.

/**
 * The folder below `bin` that the extension looks into, by the name that the Marketplace has for
 * the platform. Node has no name of its own for Alpine: it is a Linux.
 */
export function placeOf(target) {
    return target.replace(/^alpine-/, 'linux-');
}
