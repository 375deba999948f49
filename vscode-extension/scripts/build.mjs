// Bundles the extension into dist/. With --tests it bundles the unit tests into out/test/.
import { build } from 'esbuild';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const common = {
    absWorkingDir: root,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    logLevel: 'warning',
};

if (process.argv.includes('--tests')) {
    rmSync(join(root, 'out/test'), { recursive: true, force: true });
    const files = (folder, ending) =>
        readdirSync(join(root, folder))
            .filter((name) => name.endsWith(ending))
            .map((name) => `${folder}/${name}`);
    // `vscode` is not external in these builds. So they fail if the core imports the editor.
    await build({ ...common, entryPoints: files('src/core', '.ts'), outdir: 'out/core' });
    await build({
        ...common,
        entryPoints: files('test', '.test.ts'),
        outdir: 'out/test',
        sourcemap: 'inline',
    });
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
    // The packager reads this list and adds the licences of the packages in the bundle.
    mkdirSync(join(root, 'out'), { recursive: true });
    writeFileSync(
        join(root, 'out/inputs.json'),
        JSON.stringify(Object.keys(built.metafile.inputs)),
    );
}
