// Claude's TypeScript SDK: what a host turns while a session runs, and looks up in it.

import assert from 'node:assert/strict';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';
import { all, binary, call, place, result, say, signal, user } from './model.mjs';

const options = (at, more = {}) => ({ pathToClaudeCodeExecutable: binary, cwd: at.work, env: at.env, ...more });

/** A session whose host does `work` before the prompt `hi`, and `between` before a second prompt. */
async function steered(at, work, more = {}, between = undefined) {
  const ready = signal();
  const first = signal();
  const running = query({
    prompt: (async function* () {
      await ready.promise;
      yield user('hi');
      if (between) {
        await first.promise;
        yield user('again');
      }
    })(),
    options: options(at, more),
  });
  const messages = [];
  const reading = (async () => {
    for await (const message of running) {
      messages.push(message);
      if (message.type === 'result' && between && !first.done) {
        first.done = true;
        await between(running);
        first.open();
      }
    }
  })();
  await work(running);
  ready.open();
  await reading;
  return messages;
}

test('how much the model thinks can be changed, and changed back', async (t) => {
  const at = await place(t, [say('one'), say('two')]);
  await steered(
    at,
    (running) => running.setMaxThinkingTokens(2048),
    {},
    (running) => running.setMaxThinkingTokens(null),
  );
  const [first, second] = await at.requests();
  assert.deepEqual([first.enable_thinking, first.thinking_budget], [true, 2048]);
  assert.equal('enable_thinking' in second, false);
});

test('a way to show thinking that is not known is an error, and the session goes on', async (t) => {
  const at = await place(t, [say('fine')]);
  const messages = await steered(at, async (running) => {
    await assert.rejects(running.setMaxThinkingTokens(0, 'highlights'), /highlights/);
  });
  assert.equal(result(messages).result, 'fine');
  assert.equal((await at.requests())[0].enable_thinking, false);
});

const clock = () =>
  createSdkMcpServer({
    name: 'clock',
    tools: [tool('now', 'The time', { zone: z.string() }, async () => ({ content: [{ type: 'text', text: 'noon' }] }))],
  });

test('servers can be brought and taken away while the session runs', async (t) => {
  const at = await place(t, [say('one'), say('two')]);
  const answers = [];
  await steered(
    at,
    async (running) => answers.push(await running.setMcpServers({ clock: clock() })),
    {},
    async (running) => answers.push(await running.setMcpServers({})),
  );
  assert.deepEqual(answers.map((answer) => [answer.added, answer.removed, answer.errors]), [
    [['clock'], [], {}],
    [[], ['clock'], {}],
  ]);
  const offered = (await at.requests()).map((request) => request.tools.map((entry) => entry.function.name));
  assert.deepEqual(offered.map((names) => names.includes('mcp__clock__now')), [true, false]);
});

test('a server that cannot be started is told by its name', async (t) => {
  const at = await place(t, [say('fine')]);
  await steered(at, async (running) => {
    const answer = await running.setMcpServers({ broken: { command: '/no/such/program' } });
    assert.deepEqual(Object.keys(answer.errors), ['broken']);
  });
});

test('settings can be changed for the rest of the session', async (t) => {
  const write = call('write_file', { file_path: 'out.txt', content: 'x' }, 'call_w');
  const at = await place(t, [say(write), say('one'), say(write), say('two')]);
  const messages = await steered(
    at,
    (running) => running.applyFlagSettings({ model: 'other', effortLevel: 'low', permissions: { allow: ['Write'] } }),
    {},
    (running) => running.applyFlagSettings({ permissions: null, model: null }),
  );
  const ends = messages.filter((message) => message.type === 'result');
  assert.deepEqual(ends.map((end) => end.permission_denials.length), [0, 1]);
  const requests = await at.requests();
  assert.deepEqual([requests[0].model, requests[0].reasoning_effort], ['other', 'low']);
  assert.notEqual(requests[2].model, 'other');
});

test('settings that cannot be changed are refused as a whole', async (t) => {
  const at = await place(t, [say('fine')]);
  await steered(at, async (running) => {
    await assert.rejects(running.applyFlagSettings({ model: 'other', outputStyle: 'x' }), /outputStyle/);
  });
  assert.notEqual((await at.requests())[0].model, 'other');
});

test('files can be read that the agent may read, and no others', async (t) => {
  const at = await place(t, [say('fine')]);
  const path = join(at.work, 'a.txt');
  writeFileSync(path, 'hello');
  await steered(
    at,
    async (running) => {
      const file = await running.readFile('a.txt');
      assert.deepEqual([file.contents, file.truncated], ['hello', false]);
      assert.equal((await running.readFile('a.txt', { maxBytes: 2 })).truncated, true);
      assert.equal((await running.readFile('a.txt', { encoding: 'base64' })).contents, 'aGVsbG8=');
      assert.equal(await running.readFile('missing.txt'), null);
      assert.equal(await running.readFile('/etc/shadow'), null);
      await running.seedReadState(path, Math.floor(statSync(path).mtimeMs));
    },
  );
});

test('what there is can be asked', async (t) => {
  const at = await place(t, [say('fine')]);
  const agents = { reviewer: { description: 'Reviews.', prompt: 'Review.' } };
  await steered(
    at,
    async (running) => {
      assert.ok((await running.supportedCommands()).length > 0);
      assert.ok((await running.supportedModels()).every((model) => model.value && model.displayName));
      assert.ok((await running.supportedAgents()).some((agent) => agent.name === 'reviewer'));
      assert.equal(typeof (await running.accountInfo()).apiKeySource, 'string');
      assert.deepEqual((await running.reloadOutputStyles()).available_output_styles, ['default', 'Explanatory', 'Learning']);
      assert.ok(await running.reinitialize());
    },
    { agents },
  );
});

test('an agent of the host can be the session itself', async (t) => {
  const at = await place(t, [say('fine')]);
  const agents = { reviewer: { description: 'Reviews.', prompt: 'You review.', tools: ['Read'] } };
  await all(query({ prompt: 'hi', options: options(at, { agent: 'reviewer', agents }) }));
  assert.match(await at.system(0), /^You review\./);
  assert.deepEqual((await at.requests())[0].tools.map((entry) => entry.function.name), ['Read']);
});

test('hooks are told while they work', async (t) => {
  const at = await place(t, [say(call('list_directory', { path: '.' }, 'call_l')), say('done')]);
  const hooks = { PreToolUse: [{ hooks: [async () => ({ continue: true })] }] };
  const messages = await all(query({ prompt: 'hi', options: options(at, { hooks, includeHookEvents: true }) }));
  const told = messages.filter((message) => message.subtype?.startsWith('hook_'));
  assert.deepEqual(told.map((line) => [line.subtype, line.hook_name, line.outcome]), [
    ['hook_started', 'PreToolUse:LS', undefined],
    ['hook_response', 'PreToolUse:LS', 'success'],
  ]);
});
