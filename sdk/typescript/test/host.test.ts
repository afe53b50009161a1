// What becomes of workers when their host ends, in every way a host can end.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { binary, exitOf, format, gate, isRunning, packageRoot, place, say, until } from './harness.js';
import type { Place, Reply } from './harness.js';

/** A host in a process of its own. It prints the worker's pid when the turn has begun. */
async function host(t: TestContext, at: Place, body: string): Promise<{ child: ChildProcess; pid: number; said: string[] }> {
  const file = join(at.work, format === 'cjs' ? 'host.cjs' : 'host.mjs');
  const entry = join(packageRoot, 'dist', format, 'index.js');
  const load = format === 'cjs' ? `const { createAgentManager } = require(${JSON.stringify(entry)});` : `import { createAgentManager } from ${JSON.stringify(entry)};`;
  writeFileSync(file, `${load}
    (async () => {
      const session = await createAgentManager({ binaryPath: ${JSON.stringify(binary)} }).createSession();
      ${body}
    })();`);
  const env = Object.fromEntries(Object.entries({ ...process.env, ...at.env }).filter((entry): entry is [string, string] => entry[1] !== undefined));
  const child = spawn(process.execPath, [file], { cwd: at.work, env, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const said: string[] = [];
  const lines = createInterface(child.stdout);
  const pid = await new Promise<number>((resolve) => {
    lines.on('line', (line) => {
      said.push(line);
      if (/^\d+$/.test(line)) resolve(Number(line));
    });
  });
  return { child, pid, said };
}

const IN_A_TURN = `for await (const message of session.stream('go')) if (message.type === 'text') console.log(session.pid);`;
const HANGING: Reply[] = [say('begun ', gate('never'))];

test('no worker is left after kill -9 of its host', async (t) => {
  const at = await place(t, HANGING);
  const { child, pid } = await host(t, at, IN_A_TURN);
  child.kill('SIGKILL');
  await exitOf(child);
  await until('the worker is gone', () => !isRunning(pid));
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  test(`no worker is left after ${signal} to its host`, async (t) => {
    const at = await place(t, HANGING);
    const { child, pid } = await host(t, at, IN_A_TURN);
    child.kill(signal);
    await exitOf(child);
    await until('the worker is gone', () => !isRunning(pid));
  });
}

test('process.exit within a turn leaves no worker', async (t) => {
  const at = await place(t, HANGING);
  const { child, pid } = await host(t, at, `for await (const message of session.stream('go')) if (message.type === 'text') { console.log(session.pid); setImmediate(() => process.exit(3)); }`);
  assert.deepEqual(await exitOf(child), { code: 3, signal: null });
  await until('the worker is gone', () => !isRunning(pid));
});

test('an uncaught exception within a turn leaves no worker', async (t) => {
  const at = await place(t, HANGING);
  const { child, pid } = await host(t, at, `process.on('uncaughtException', () => process.exit(4)); for await (const message of session.stream('go')) if (message.type === 'text') { console.log(session.pid); throw new Error('oops'); }`);
  assert.deepEqual(await exitOf(child), { code: 4, signal: null });
  await until('the worker is gone', () => !isRunning(pid));
});

test('an open session does not keep a host alive that has nothing left to do', async (t) => {
  const at = await place(t, [say('done')]);
  const { child, pid, said } = await host(t, at, `const result = await session.run('go'); console.log(result.text); console.log(session.pid);`);
  assert.deepEqual(await exitOf(child), { code: 0, signal: null });
  assert.equal(said[0], 'done');
  await until('the worker is gone', () => !isRunning(pid));
});

test('a running turn keeps the host alive', async (t) => {
  const at = await place(t, [say('begun ', gate('hold'), 'done')]);
  const { child, said } = await host(t, at, `session.run('go').then((result) => console.log(result.text)); console.log(session.pid);`);
  await at.reached('hold');
  assert.ok(isRunning(child.pid ?? 0));
  await at.open('hold');
  await exitOf(child);
  assert.equal(said[1], 'begun done');
});
