import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync, chmodSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import type { AgentMessage } from '@qwen-agent/sdk';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { all, binary, call, fakeWorker, gate, isRunning, only, place, say, sdk, signal, temporaryDirectory, until, workers } from './harness.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Kills the worker of a session, which the hub started. */
const killWorker = (session: { pid: number | undefined }, signal: NodeJS.Signals = 'SIGKILL'): void => {
  for (const pid of workers(session.pid)) process.kill(pid, signal);
};

test('a worker killed in a turn ends it as interrupted, and the session goes on', async (t) => {
  const at = await place(t, [say('one'), say('begun ', gate('never')), say('three')]);
  const session = await at.manager().createSession();
  await session.run('a');
  const turn = session.stream('b');
  for await (const message of turn) if (message.type === 'text') killWorker(session);
  const result = await turn.result();
  assert.deepEqual([result.status, result.done, result.error?.code], ['interrupted', false, 'worker_lost']);
  assert.equal((await session.run('c')).text, 'three');
  const history = await at.history();
  assert.deepEqual([history[0], history.at(-1)], ['a', 'c']);
});

const NAP = call('run_shell_command', { command: 'echo run >> runs.txt; sleep 4343' });
const COUNT = call('run_shell_command', { command: 'echo run >> runs.txt' });
const HELD = say('thinking', gate('never'));
for (const onCrash of ['error', 'resume', 'retry', 'fork'] as const) {
  for (const [moment, replies] of [['between turns', [say('first')]], ['before a tool', [HELD]], ['in a tool', [say(NAP)]], ['after a tool', [say(COUNT), HELD]]] as const) {
    test(`with onCrash ${onCrash}, a worker that dies ${moment}: the turn ends as the policy says and no tool runs twice`, async (t) => {
      const at = await place(t, [...replies, say('done')]);
      const session = await at.manager({ onCrash, permissionMode: 'yolo' }).createSession();
      const { id } = session;
      if (moment === 'between turns') {
        await session.run('go');
        killWorker(session);
        assert.equal((await session.run('again')).text, 'done');
        return;
      }
      const runs = join(at.work, 'runs.txt');
      let isKilled = false;
      const turn = session.stream('go');
      for await (const message of turn) {
        const isDue = moment === 'in a tool' ? message.type === 'tool_status' && message.status === 'executing' : message.type === 'text';
        if (!isDue || isKilled) continue;
        isKilled = true;
        if (moment === 'in a tool') await until('the tool has run', () => existsSync(runs) && readFileSync(runs, 'utf8').endsWith('\n'));
        killWorker(session);
      }
      const result = await turn.result();
      const isContinued = onCrash === 'resume' || onCrash === 'fork' || (onCrash === 'retry' && moment === 'before a tool');
      assert.equal(result.status, isContinued ? 'done' : 'interrupted', result.error?.message);
      assert.equal(session.id !== id, onCrash === 'fork');
      const count = existsSync(runs) ? readFileSync(runs, 'utf8').split('run').length - 1 : 0;
      assert.equal(count, moment === 'before a tool' ? 0 : 1, 'no tool runs twice');
    });
  }
}

test('a hub that is lost ends its sessions with an error that has its exit and the last result', async (t) => {
  const at = await place(t, [say('one'), say('begun ', gate('never'))]);
  const session = await at.manager().createSession();
  const kept = await session.run('a');
  const consumed = (async () => {
    for await (const message of session.stream('b')) if (message.type === 'text') process.kill(session.pid ?? 0, 'SIGKILL');
  })();
  await assert.rejects(consumed, (error: Error & { signal?: string; lastResult?: unknown }) => {
    assert.deepEqual([error.name, error.signal, error.lastResult], ['WorkerExitedError', 'SIGKILL', kept]);
    return true;
  });
  assert.equal(session.lastResult, kept);
  await assert.rejects(session.run('c'), { name: 'WorkerExitedError' });
});

test('a worker that stops answering is ended and treated as crashed', async (t) => {
  const at = await place(t, [say('begun ', gate('never')), say('again')]);
  const session = await at.manager({ heartbeat: { intervalMs: 100, maxMissed: 5 } }).createSession();
  const turn = session.stream('a');
  for await (const message of turn) if (message.type === 'text') killWorker(session, 'SIGSTOP');
  assert.deepEqual([(await turn.result()).status, (await turn.result()).error?.code], ['interrupted', 'worker_lost']);
  assert.equal((await session.run('b')).text, 'again');
});

test('a hub that closes its output and lives on is ended and treated as crashed', async (t) => {
  const path = fakeWorker(t, "handshake(); serve(() => require('node:fs').closeSync(1));");
  const manager = sdk.createAgentManager({ binaryPath: path, heartbeat: false });
  t.after(() => manager.close());
  const session = await manager.createSession();
  await assert.rejects(session.run('go'), { name: 'WorkerExitedError', signal: 'SIGKILL' });
});

test('heartbeats of a busy worker keep it alive', async (t) => {
  const at = await place(t, [say('begun ', gate('hold'), 'done')]);
  const session = await at.manager({ heartbeat: { intervalMs: 100, maxMissed: 2 } }).createSession();
  let beats = 0;
  const messages: AgentMessage[] = [];
  for await (const message of session.stream('a')) {
    messages.push(message);
    if (message.type === 'heartbeat' && (beats += 1) === 8) await at.open('hold');
  }
  assert.equal(only(messages, 'result')[0]?.result.text, 'begun done');
});

test('a reader slower than the stream loses nothing and memory stays bounded', async (t) => {
  const path = fakeWorker(t, `handshake();
    const filler = 'x'.repeat(1000);
    serve(async (prompt) => {
      for (let n = 0; n < 60_000; n += 1) {
        const line = JSON.stringify({ type: 'x-qwen-terminal', channel: 'stdout', source: 'tool', session_id: id, prompt_id: prompt, text: n + ';' + filler }) + '\\n';
        if (!process.stdout.write(line)) await new Promise((done) => process.stdout.once('drain', done));
      }
      terminal(prompt);
    });`);
  const session = await sdk.createAgentManager({ binaryPath: path, heartbeat: false }).createSession();
  let expected = 0;
  let peak = 0;
  for await (const message of session.stream('flood')) {
    if (message.type !== 'terminal') continue;
    assert.equal(message.text.slice(0, message.text.indexOf(';')), String(expected));
    expected += 1;
    if (expected % 5000 !== 0) continue;
    // Everything that can arrive meanwhile arrives.
    for (let n = 0; n < 200; n += 1) await turnOfTheLoop();
    collectGarbage();
    peak = Math.max(peak, process.memoryUsage().heapUsed);
  }
  assert.equal(expected, 60_000);
  // The stream is 70 MB; a queue without bounds would hold most of it.
  assert.ok(peak < 48 * 1024 * 1024, `${String(peak)} bytes of heap`);
  await session.close();
});

test('a line of 60 MB is read', async (t) => {
  const path = fakeWorker(t, `handshake(); serve((prompt) => { text(prompt, 'y'.repeat(60_000_000)); terminal(prompt); });`);
  const session = await sdk.createAgentManager({ binaryPath: path, heartbeat: false }).createSession();
  assert.equal((await session.run('x')).text.length, 60_000_000);
  await session.close();
});

test('a line that is no JSON is an event and the stream goes on', async (t) => {
  const path = fakeWorker(t, `handshake(); serve((prompt) => { text(prompt, 'a'); write('{"half'); write('\\u0007 garbage'); text(prompt, 'b'); terminal(prompt); });`);
  const session = await sdk.createAgentManager({ binaryPath: path, heartbeat: false }).createSession();
  const messages = await all(session.stream('x'));
  assert.deepEqual(only(messages, 'unknown').map(({ reason, data }) => [reason, data]), [['malformed', '{"half'], ['malformed', '\u0007 garbage']]);
  assert.equal(only(messages, 'result')[0]?.result.text, 'ab');
  await session.close();
});

test('an unknown event is delivered with its data and the stream goes on', async (t) => {
  const path = fakeWorker(t, `handshake(); serve((prompt) => { write({ type: 'x-qwen-hologram', prompt_id: prompt, depth: 3 }); write({ type: 'x-qwen-thought', prompt_id: prompt, subject: 's', description: 'd', later: 1 }); terminal(prompt); });`);
  const session = await sdk.createAgentManager({ binaryPath: path, heartbeat: false }).createSession();
  const messages = await all(session.stream('x'));
  const [unknown] = only(messages, 'unknown');
  assert.equal((unknown?.data as { depth?: number }).depth, 3);
  assert.equal((only(messages, 'thought')[0]?.raw as { later?: number }).later, 1);
  await session.close();
});

test('a line outside of any turn reaches subscribers', async (t) => {
  const path = fakeWorker(t, `handshake(); serve((prompt) => { write({ type: 'x-qwen-session-event', event: 'Custom', message: 'aside' }); terminal(prompt); });`);
  const session = await sdk.createAgentManager({ binaryPath: path, heartbeat: false }).createSession();
  const seen = signal<AgentMessage>();
  session.subscribe(seen.open);
  await session.run('x');
  assert.equal((await seen.promise).type, 'session_event');
  await session.close();
});

test('a flood on standard error stops nothing and its tail is in the error', async (t) => {
  const path = fakeWorker(t, `handshake(); serve(async (prompt) => {
    for (let n = 0; n < 400; n += 1) if (!process.stderr.write('e'.repeat(10_000) + '\\n')) await new Promise((done) => process.stderr.once('drain', done));
    text(prompt, 'through'); process.stderr.write('the last words\\n', () => process.exit(9));
  });`);
  let bytes = 0;
  const session = await sdk.createAgentManager({ binaryPath: path, heartbeat: false, stderr: (text) => { bytes += text.length; } }).createSession();
  await assert.rejects(session.run('x'), (error: Error & { exitCode?: number; stderrTail?: string }) => {
    assert.equal(error.exitCode, 9);
    assert.match(error.stderrTail ?? '', /the last words\n$/);
    assert.match(error.message, /the last words/);
    return true;
  });
  assert.ok(bytes >= 4_000_000);
  await session.close();
});

test('a missing binary is an error that says where was looked and what to do', async () => {
  const manager = sdk.createAgentManager({ env: { PATH: '/nowhere', QWEN_BIN: undefined } });
  await assert.rejects(manager.createSession(), (error: Error & { searched?: string[] }) => {
    assert.equal(error.name, 'BinaryNotFoundError');
    assert.match(error.message, /QWEN_BIN/);
    assert.match(error.message, /binaryPath/);
    assert.ok(error.searched?.some((place) => place.includes('/nowhere')));
    return true;
  });
});

test('the binary is looked up in the option, QWEN_BIN and PATH, in this order', async (t) => {
  const root = temporaryDirectory(t);
  const worker = (name: string): string => {
    mkdirSync(join(root, name));
    const path = join(root, name, 'qwen');
    symlinkSync(fakeWorker(t, `handshake(); serve((prompt) => { text(prompt, ${JSON.stringify(name)}); terminal(prompt); });`), path);
    return path;
  };
  const [option, variable, onPath] = [worker('option'), worker('variable'), worker('path')];
  const path = `${join(onPath, '..')}:${process.env.PATH ?? ''}`;
  const answer = async (binaryPath: string | undefined, env: Record<string, string | undefined>): Promise<string> =>
    (await sdk.createAgentManager({ binaryPath, env: { PATH: path, ...env }, heartbeat: false }).run('who?')).text;
  assert.equal(await answer(option, { QWEN_BIN: variable }), 'option');
  assert.equal(await answer(undefined, { QWEN_BIN: variable }), 'variable');
  assert.equal(await answer(undefined, { QWEN_BIN: undefined }), 'path');
  assert.equal(await answer('qwen', { QWEN_BIN: variable }), 'path');
  await assert.rejects(answer(join(root, 'absent'), { QWEN_BIN: variable }), { name: 'BinaryNotFoundError' });
});

test('a program that is no worker is an error', async (t) => {
  const start = (path: string, timeouts = {}): Promise<unknown> => sdk.createAgentManager({ binaryPath: path, timeouts }).createSession();
  await assert.rejects(start('/bin/true'), { name: 'ProtocolError', code: 'not_a_worker' });
  await assert.rejects(start(fakeWorker(t, 'write("hello, I am a shell"); setInterval(() => {}, 1000);')), { name: 'ProtocolError', code: 'not_a_worker' });
  await assert.rejects(start(fakeWorker(t, 'setInterval(() => {}, 1000);'), { start: 200 }), { name: 'TimeoutError', timeout: 'start' });
  const broken = join(temporaryDirectory(t), 'broken');
  writeFileSync(broken, Buffer.from([0, 1, 2, 3]));
  chmodSync(broken, 0o755);
  await assert.rejects(start(broken), { name: 'ProtocolError' });
});

test('a working directory that does not exist is an error', async (t) => {
  const cwd = join(temporaryDirectory(t), 'absent');
  await assert.rejects(sdk.createAgentManager({ binaryPath: binary, cwd }).createSession(), { name: 'ProtocolError', code: 'cannot_start' });
});

test('another protocol version is an error that names both', async (t) => {
  const path = fakeWorker(t, 'handshake("2.0"); serve(() => {});');
  await assert.rejects(sdk.createAgentManager({ binaryPath: path }).createSession(), (error: Error & { code?: string }) => {
    assert.equal(error.code, 'unsupported_protocol');
    assert.match(error.message, /2\.0.*1\.0/);
    return true;
  });
});

test('settings that the worker cannot use are an error with its words', async (t) => {
  const at = await place(t, []);
  await assert.rejects(at.manager({ settings: { model: { name: 7 } } }).createSession(), (error: Error & { exitCode?: number }) => {
    assert.equal(error.exitCode, 52);
    assert.match(error.message, /model/);
    return true;
  });
});

const ASK = say('begun ', call('write_file', { file_path: 'x', content: 'x' }));
const HANG = say('begun ', gate('never'));

for (const [point, reply, isReached] of [
  ['before the first message', HANG, undefined],
  ['in the text', HANG, (message: AgentMessage) => message.type === 'text'],
  ['in a tool', say(call('run_shell_command', { command: 'sleep 66' })), (message: AgentMessage) => message.type === 'tool_status' && message.status === 'executing'],
  ['while a question is open', ASK, (message: AgentMessage) => message.type === 'tool_status' && message.status === 'confirming'],
] as const) {
  test(`close ${point} returns within its time-out and leaves no worker`, async (t) => {
    const at = await place(t, [reply]);
    const isTool = point === 'in a tool';
    const onPermissionRequest = (): Promise<'allow'> => (isTool ? Promise.resolve('allow') : new Promise(() => undefined));
    const session = await at.manager({ onPermissionRequest, timeouts: { close: 10_000 } }).createSession();
    const { pid = 0 } = session;
    const turn = session.stream('go');
    const reached = signal();
    const consumed = (async () => {
      for await (const message of turn) if (isReached?.(message)) reached.open();
    })();
    consumed.catch(() => undefined);
    if (isReached !== undefined) await reached.promise;
    await session.close();
    assert.ok(!isRunning(pid));
    // The terminal record arrives before the end, unless the prompt was not sent yet.
    await turn.result().then((result) => { assert.equal(result.isError, true); }, (error: unknown) => { assert.equal((error as Error).name, 'ClosedError'); });
  });
}

test('close of a worker that ignores everything returns within its time-out', async (t) => {
  const path = fakeWorker(t, `process.on('SIGTERM', () => {}); handshake(); serve(() => {}); process.stdin.on('close', () => {}); process.exit = () => {}; setInterval(() => {}, 1000);`);
  const session = await sdk.createAgentManager({ binaryPath: path, timeouts: { close: 1000 }, heartbeat: false }).createSession();
  const { pid = 0 } = session;
  const turn = assert.rejects(session.run('x'), { name: 'ClosedError' });
  await session.close();
  await turn;
  await until('the worker is gone', () => !isRunning(pid));
});

test('close twice, and from two places at once, is one close', async (t) => {
  const at = await place(t, [say('hi')]);
  const manager = at.manager();
  const session = await manager.createSession();
  await session.run('a');
  await Promise.all([session.close(), session.close(), manager.close()]);
  await assert.rejects(session.run('b'), { name: 'ClosedError' });
});

test('an aborted signal ends the start of a session', async (t) => {
  const path = fakeWorker(t, 'setInterval(() => {}, 1000);');
  const controller = new AbortController();
  const start = sdk.createAgentManager({ binaryPath: path, timeouts: { close: 500 } }).createSession({ signal: controller.signal });
  controller.abort();
  await assert.rejects(start, { name: 'AbortError' });
});

test('close ends a worker that is still being started', async (t) => {
  const directory = temporaryDirectory(t);
  const path = fakeWorker(t, `require('node:fs').writeFileSync(${JSON.stringify(join(directory, 'pid'))}, String(process.pid)); setInterval(() => {}, 1000);`);
  const manager = sdk.createAgentManager({ binaryPath: path });
  const start = assert.rejects(manager.createSession(), { name: 'ClosedError' });
  const pid = (): string => readFileSync(join(directory, 'pid'), { encoding: 'utf8', flag: 'a+' });
  await until('the worker runs', () => pid() !== '');
  await manager.close();
  await start;
  assert.equal(isRunning(Number(pid())), false);
});

test('the model is told about the policy of the host', async (t) => {
  const at = await place(t, [say('read')]);
  const session = await at.manager({ policyDescription: 'Deployments need a ticket.' }).createSession();
  assert.equal((await session.run('hi')).text, 'read');
  assert.ok((await at.situation()).includes('policy of the host: Deployments need a ticket.'));
});

test('prompts and system prompts of any size go through standard input', async (t) => {
  const at = await place(t, [say('read')]);
  const session = await at.manager({ systemPrompt: `You are terse. ${'s'.repeat(300_000)}` }).createSession();
  const secret = 'p'.repeat(300_000);
  const turn = session.run(`read this: ${secret}`);
  const argv = readFileSync(`/proc/${String(session.pid)}/cmdline`, 'utf8');
  assert.ok(!argv.includes('read this') && !argv.includes('You are terse'));
  assert.equal((await turn).text, 'read');
  const messages = JSON.stringify((await at.requests())[0]?.messages);
  assert.ok(messages.includes(secret) && messages.includes('You are terse.'));
});
