// What the TypeScript SDK costs, beside @qwen-code/sdk driving the same binary with the same stream: rows of a table.
//
//   node sdk/typescript/bench/run.mjs      QWEN_BIN names the binary (default target/release/qwen)
//
// The peer is installed into target/sdk-bench. Only the processor time of the host process is counted.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..', '..');
const binary = process.env.QWEN_BIN ?? join(root, 'target', 'release', 'qwen');
const ours = join(here, '..', 'dist', 'esm', 'index.js');
const CHUNKS = 20_000;
const RUNS = Number(process.env.QWEN_BENCH_RUNS ?? 5);
const PEER = '@qwen-code/sdk@0.1.14';

function peerEntry() {
  const folder = join(root, 'target', 'sdk-bench');
  const entry = join(folder, 'node_modules', '@qwen-code', 'sdk', 'dist', 'index.mjs');
  if (!existsSync(entry)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"private":true}');
    execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--omit=optional', '--silent', PEER], { cwd: folder });
  }
  return entry;
}

const work = mkdtempSync(join(tmpdir(), 'qwen-bench-'));
const env = { PATH: process.env.PATH, HOME: work };

function script(name, turns) {
  const path = join(work, `${name}.json`);
  writeFileSync(path, JSON.stringify(turns));
  return path;
}

function measure(mode, subject, file, ...rest) {
  const out = execFileSync(process.execPath, [join(here, 'drive.mjs'), mode, subject, binary, file, ...rest], { cwd: work, env, encoding: 'utf8' });
  return JSON.parse(out);
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const repeated = (measured) => median(Array.from({ length: RUNS }, measured));

function row(what, value, unit, target) {
  const verdict = target === undefined ? '' : value <= target ? '✓' : '✗';
  process.stdout.write(`| ${what} | ${value.toFixed(value < 10 ? 2 : 0)} ${unit} | ${target === undefined ? '–' : `≤ ${target.toFixed(target < 10 ? 2 : 0)} ${unit}`} | ${verdict} |\n`);
}

try {
  const flood = script('flood', [[{ repeat: CHUNKS, text: 'word ' }]]);
  const hello = script('hello', [[{ text: 'hello' }]]);
  const perEvent = (subject) => () => {
    const { events, microseconds } = measure('stream', subject, flood);
    if (events < CHUNKS) throw new Error(`${String(events)} of ${String(CHUNKS)} events arrived with ${subject}`);
    return microseconds / events;
  };
  const peer = peerEntry();
  process.stdout.write('| what | measured | target | ok? |\n|---|---:|---:|:-:|\n');
  const theirs = repeated(perEvent(peer));
  row(`TypeScript: CPU for an event of a stream of ${String(CHUNKS)}, ${PEER}`, theirs, 'µs');
  row(`TypeScript: CPU for an event of a stream of ${String(CHUNKS)}, @qwen-agent/sdk`, repeated(perEvent(ours)), 'µs', theirs / 2);
  row('TypeScript: import to first message, @qwen-code/sdk', repeated(() => measure('cold', peer, hello).milliseconds), 'ms');
  row('TypeScript: import to first message, @qwen-agent/sdk', repeated(() => measure('cold', ours, hello).milliseconds), 'ms', 60);
  const { done, milliseconds, bytes } = measure('sessions', ours, hello, '100');
  if (done !== 100) throw new Error(`${String(done)} of 100 sessions finished their turn`);
  row('TypeScript: 100 sessions at once, start and one turn each', milliseconds, 'ms');
  row('TypeScript: memory of the host for each of them', bytes / 1000, 'kB');
} finally {
  rmSync(work, { recursive: true, force: true });
}
