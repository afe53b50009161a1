import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { call, gate, isRunning, place, say, sdk, until, workers } from './harness.js';

test('a pool of 4 workers serves 20 sessions', async (t) => {
  const at = await place(t, [say('hello')], { loop: true });
  const manager = at.manager({ workerPool: { maxWorkers: 4 } });
  const results = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const session = await manager.createSession();
      const result = await session.run('hi');
      await session.close();
      return result;
    }),
  );
  assert.ok(results.every(({ text, ok }) => ok && text === 'hello'));
  assert.equal(new Set(results.map(({ sessionId }) => sessionId)).size, 20);
  const [hub] = workers();
  assert.ok(hub !== undefined && workers().length === 1);
  await manager.close();
  await until('the hub and its workers are gone', () => !isRunning(hub));
});

test('sessions of a pool continue their own conversations', async (t) => {
  const at = await place(t, [say('one'), say('two'), say('three')]);
  const manager = at.manager({ workerPool: { maxWorkers: 2 } });
  const [a, b] = [await manager.createSession(), await manager.createSession()];
  await a.run('a1');
  await b.run('b1');
  await a.run('a2');
  assert.deepEqual(await at.history(), ['a1', 'one', 'a2']);
});

test('callbacks of a pool find the session that they belong to', async (t) => {
  const at = await place(t, [say(call('run_shell_command', { command: 'touch a.txt' })), say('done')], { loop: true });
  const manager = at.manager({ workerPool: { maxWorkers: 3 } });
  const asked: string[] = [];
  const ask = (name: string) => ({ sessionId }: { sessionId: string }): 'allow' => { asked.push(`${name} ${sessionId}`); return 'allow'; };
  const double = sdk.tool({ name: 'noop', description: 'Does nothing', input: {}, run: () => 'ok' });
  const sessions = await Promise.all(['x', 'y'].map((name) => manager.createSession({ onPermissionRequest: ask(name), tools: [sdk.defineTools(name, [double])] })));
  for (const session of sessions) await session.run('go');
  assert.deepEqual(asked.sort(), [`x ${sessions[0]?.id ?? ''}`, `y ${sessions[1]?.id ?? ''}`]);
  assert.ok(existsSync(join(at.work, 'a.txt')));
});

test('a worker of a pool that dies ends its turn with the cause, and its session goes on', async (t) => {
  const at = await place(t, [say('one'), say('begun ', gate('never')), say('three')]);
  const session = await at.manager({ workerPool: { maxWorkers: 2 } }).createSession();
  await session.run('a');
  const turn = session.stream('b');
  for await (const message of turn) {
    if (message.type !== 'text') continue;
    for (const pid of workers(session.pid)) process.kill(pid, 'SIGKILL');
  }
  const result = await turn.result();
  assert.deepEqual([result.isError, result.error?.code], [true, 'worker_lost']);
  assert.equal((await session.run('c')).text, 'three');
  assert.equal((await at.history())[0], 'a');
});

test('every session of a killed hub ends with an error, and a new session gets a new hub', async (t) => {
  const at = await place(t, [say('begun ', gate('never'))], { loop: true });
  const manager = at.manager({ workerPool: { maxWorkers: 4 } });
  const sessions = await Promise.all([1, 2, 3].map(() => manager.createSession()));
  const { pid = 0 } = sessions[0] ?? {};
  let begun = 0;
  const turns = sessions.map(async (session) => {
    for await (const message of session.stream('go')) if (message.type === 'text' && (begun += 1) === 3) process.kill(pid, 'SIGKILL');
  });
  for (const turn of turns) await assert.rejects(turn, { name: 'WorkerExitedError', signal: 'SIGKILL' });
  const session = await manager.createSession();
  for await (const message of session.stream('again')) if (message.type === 'text') break;
  assert.notEqual(session.pid, pid);
});

test('a pool resumes and forks sessions', async (t) => {
  const at = await place(t, [say('one'), say('two'), say('three')]);
  const manager = at.manager({ workerPool: { maxWorkers: 3 } });
  const first = await manager.createSession();
  await first.run('a');
  const fork = await manager.forkSession(first);
  await fork.run('b');
  assert.deepEqual(await at.history(), ['a', 'one', 'b']);
  await first.close();
  const again = await manager.resumeSession(first.id);
  await again.run('c');
  assert.deepEqual(await at.history(), ['a', 'one', 'c']);
  await assert.rejects(manager.resumeSession('nobody-knows'), { code: 'unknown_session' });
});

test('sessions of a pool have their own working directory, model and permission mode', async (t) => {
  const at = await place(t, [say(call('write_file', { file_path: 'here.txt', content: 'x' })), say('done')]);
  const manager = at.manager({ workerPool: { maxWorkers: 2 }, cwd: at.home });
  const session = await manager.createSession({ cwd: at.work, model: 'special', permissionMode: 'yolo' });
  await session.run('go');
  assert.ok(existsSync(join(at.work, 'here.txt')));
  assert.equal((await at.requests())[0]?.model, 'special');
});
