// Bundles the extension into dist/, or with --tests the unit tests into out/test/.
import { build } from 'esbuild';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const common = { absWorkingDir: root, bundle: true, platform: 'node', target: 'node20', format: 'cjs', logLevel: 'warning' };

if (process.argv.includes('--tests')) {
    rmSync(join(root, 'out/test'), { recursive: true, force: true });
    const tests = readdirSync(join(root, 'test')).filter((name) => name.endsWith('.test.ts'));
    // `vscode` is not external here: logic that imports it cannot be unit-tested, and must fail to
    // build.
    await build({ ...common, entryPoints: tests.map((name) => `test/${name}`), outdir: 'out/test', sourcemap: 'inline' });
} else {
    rmSync(join(root, 'dist'), { recursive: true, force: true });
    const built = await build({
        ...common,
        entryPoints: ['src/extension.ts'],
        outfile: 'dist/extension.js',
        external: ['vscode'],
        minify: true,
        metafile: true,
    });
    // For the packager, which adds the licences of what went in.
    mkdirSync(join(root, 'out'), { recursive: true });
    writeFileSync(join(root, 'out/inputs.json'), JSON.stringify(Object.keys(built.metafile.inputs)));
}
