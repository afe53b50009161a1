// Qwen Code's TypeScript SDK: commands in the background and sub-agents.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSDKSystemMessage, query } from '@qwen-code/sdk';
import { binary, call, gate, place, say, signal, user } from './model.mjs';

test('tasks are told, and between turns nothing is said', async (t) => {
  const at = await place(t, [
    { match: 'go', ...say(call('agent', { description: 'dig', prompt: 'Dig!', run_in_background: true }, 'call_a')) },
    { match: 'Dig!', ...say(gate('dug'), 'I found gold.') },
    { match: 'go', ...say('It digs.') },
    { match: 'and', ...say(gate('end'), 'Gold!') },
  ]);
  const next = signal();
  const running = query({
    prompt: (async function* () {
      yield user('go');
      await next.promise;
      yield user('and?');
    })(),
    options: { pathToQwenExecutable: binary, cwd: at.work, env: at.env, permissionMode: 'yolo' },
  });
  const messages = [];
  for await (const message of running) {
    messages.push(message);
    if (message.type === 'result' && message.result === 'It digs.') {
      await at.reached('dug');
      await at.open('dug');
      // The answer to a request is the only line between the turns.
      await running.getContextUsage();
      next.open();
    }
    if (message.subtype === 'task_notification') await at.open('end');
  }
  const system = messages.filter((m) => m.type === 'system');
  assert.ok(system.every(isSDKSystemMessage));
  const [first, second] = messages.flatMap((m, at) => (m.subtype === 'init' ? [at] : []));
  const told = (subtype) => messages.findIndex((m) => m.subtype === subtype);
  const result = messages.findIndex((m) => m.type === 'result');
  assert.ok(first < told('task_started') && told('task_started') < result, 'it starts in the first turn');
  assert.equal(second, result + 1, 'nothing is said between the turns');
  const ended = messages[told('task_notification')];
  assert.ok(told('task_notification') > second);
  assert.deepEqual([ended.task_id, ended.status, ended.summary], ['agent-1', 'completed', 'I found gold.']);
});
