// Builds dist/: one file each for ESM and CJS, and the types of both.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const dist = join(root, 'dist');
const { peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const shared = {
  entryPoints: [join(root, 'src', 'index.ts')],
  bundle: true,
  platform: 'node',
  target: 'node18',
  external: Object.keys(peerDependencies),
  legalComments: 'none',
};

rmSync(dist, { recursive: true, force: true });
await build({ ...shared, format: 'esm', outfile: join(dist, 'esm', 'index.js') });
await build({
  ...shared,
  format: 'cjs',
  outfile: join(dist, 'cjs', 'index.js'),
  // In CJS a module knows its place as __filename.
  define: { 'import.meta.url': '__moduleUrl' },
  banner: { js: "const __moduleUrl = require('node:url').pathToFileURL(__filename).href;" },
});
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
execFileSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit' });
cpSync(join(dist, 'types', 'esm'), join(dist, 'types', 'cjs'), { recursive: true });
for (const directory of ['cjs', join('types', 'cjs')]) {
  mkdirSync(join(dist, directory), { recursive: true });
  writeFileSync(join(dist, directory, 'package.json'), '{"type":"commonjs"}\n');
}
