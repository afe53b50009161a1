// Packs the npm packages for this platform: the SDK, and the package that carries the binary.
//
//   node scripts/pack.mjs BINARY DIRECTORY
//
// The SDK names the platform packages of all platforms as optional dependencies of exactly its own version, so npm
// installs the one that fits and no install script runs.

import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'];

const [binary, directory] = process.argv.slice(2);
if (directory === undefined) {
  process.stderr.write('usage: node scripts/pack.mjs BINARY DIRECTORY\n');
  process.exit(2);
}
const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const target = resolve(directory);
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const { version, license } = manifest;
const platform = `${process.platform}-${process.arch}`;
if (!PLATFORMS.includes(platform)) throw new Error(`There is no package for ${platform}`);

const staging = mkdtempSync(join(tmpdir(), 'qwen-pack-'));
try {
  mkdirSync(target, { recursive: true });
  pack(stagePlatform());
  pack(stageSdk());
} finally {
  rmSync(staging, { recursive: true, force: true });
}

function writeManifest(folder, value) {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(value, null, 2)}\n`);
}

function stagePlatform() {
  const folder = join(staging, 'platform');
  mkdirSync(join(folder, 'bin'), { recursive: true });
  copyFileSync(binary, join(folder, 'bin', 'qwen'));
  chmodSync(join(folder, 'bin', 'qwen'), 0o755);
  copyFileSync(join(root, '..', '..', 'LICENSE'), join(folder, 'LICENSE'));
  writeFileSync(join(folder, 'README.md'), `# @qwen-agent/sdk-${platform}\n\nThe qwen program for ${platform}. Install @qwen-agent/sdk instead.\n`);
  writeManifest(folder, {
    name: `@qwen-agent/sdk-${platform}`,
    version,
    license,
    description: `The qwen program for ${platform}`,
    os: [process.platform],
    cpu: [process.arch],
    files: ['bin'],
    preferUnplugged: true,
  });
  return folder;
}

function stageSdk() {
  const folder = join(staging, 'sdk');
  mkdirSync(folder);
  for (const name of ['bin', 'dist', 'README.md']) cpSync(join(root, name), join(folder, name), { recursive: true });
  copyFileSync(join(root, '..', '..', 'LICENSE'), join(folder, 'LICENSE'));
  const { devDependencies: _development, scripts: _scripts, ...published } = manifest;
  const optionalDependencies = Object.fromEntries(PLATFORMS.map((each) => [`@qwen-agent/sdk-${each}`, version]));
  writeManifest(folder, { ...published, optionalDependencies });
  return folder;
}

function pack(folder) {
  const out = execFileSync('npm', ['pack', '--silent', '--pack-destination', target], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  process.stdout.write(`${join(target, out.toString().trim().split('\n').at(-1))}\n`);
}
