// Makes hone-<version>.vsix from a staging folder. The list of what ships is here and nowhere else.
//   --marketplace        declares no proposed API, because the Marketplace refuses such extensions
//   --target PLATFORM    makes the package of one platform, with the programs in it
//   --programs FOLDER    takes them from its `bin` and `lib`, instead of bin/PLATFORM
//   --out FOLDER         writes the package there, instead of next to package.json
import { createVSIX } from '@vscode/vsce';
import {
    cpSync,
    existsSync,
    mkdirSync,
    readFileSync,
    readdirSync,
    rmSync,
    writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import './build.mjs';
import { placeOf } from './platform.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { values } = parseArgs({
    options: {
        marketplace: { type: 'boolean' },
        target: { type: 'string' },
        programs: { type: 'string' },
        out: { type: 'string', default: root },
    },
});

const stage = join(root, 'out/stage');
rmSync(stage, { recursive: true, force: true });
mkdirSync(stage, { recursive: true });
for (const part of ['dist', 'media', 'README.md']) {
    cpSync(join(root, part), join(stage, part), { recursive: true });
}
for (const licence of ['LICENSE', 'LICENSE-APACHE', 'LICENSE-MIT']) {
    cpSync(join(root, '..', licence), join(stage, licence));
}
writeFileSync(join(stage, 'THIRD-PARTY.txt'), thirdParty());
if (values.target) addPrograms(values.target, values.programs);

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
for (const field of ['private', 'scripts', 'devDependencies', 'dependencies']) {
    delete manifest[field];
}
// The editor brings its own Node.
delete manifest.engines.node;
if (values.marketplace) delete manifest.enabledApiProposals;
writeFileSync(join(stage, 'package.json'), JSON.stringify(manifest, null, 2));

const name = ['hone', values.target, manifest.version, values.marketplace && 'marketplace']
    .filter(Boolean)
    .join('-');
await createVSIX({
    cwd: stage,
    packagePath: join(resolve(values.out), `${name}.vsix`),
    dependencies: false,
    allowMissingRepository: true,
    rewriteRelativeLinks: false,
    ...(values.target && { target: values.target }),
});

/** Adds the programs, their libraries, and the licences of what is in them. */
function addPrograms(target, folder) {
    const programs = folder ? join(folder, 'bin') : join(root, 'bin', target);
    if (!existsSync(programs)) {
        throw new Error(`${programs}: put the programs for ${target} there`);
    }
    cpSync(programs, join(stage, 'bin', placeOf(target)), { recursive: true });
    if (!folder) return;
    // The programs look for libraries in ../lib.
    const [libraries, licences] = [join(folder, 'lib'), join(folder, 'THIRD-PARTY.txt')];
    if (existsSync(libraries)) cpSync(libraries, join(stage, 'bin/lib'), { recursive: true });
    if (existsSync(licences)) cpSync(licences, join(stage, 'bin/THIRD-PARTY.txt'));
}

/** The licences of the packages in the bundle. */
function thirdParty() {
    const inputs = JSON.parse(readFileSync(join(root, 'out/inputs.json'), 'utf8'));
    const folders = new Set(
        inputs.flatMap((input) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? []),
    );
    return [...folders].sort().map(licenceOf).join('\n----\n\n');
}

/** The name and the licence of the package in this folder. */
function licenceOf(folder) {
    const file = readdirSync(join(root, folder)).find((name) => /^licen[cs]e/i.test(name));
    if (!file) throw new Error(`${folder}: holds no licence; check whether it may be shipped`);
    const name = folder.replace(/^.*node_modules\//, '');
    return `${name}\n\n${readFileSync(join(root, folder, file), 'utf8').trim()}\n`;
}
