// Guards as the examples of Claude's TypeScript SDK and its documentation write them, with Claude's names of tools and
// arguments. Each fires: what it forbids does not happen, and the call beside it does.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { query } from '@anthropic-ai/claude-agent-sdk';
import { all, binary, call, place, result, say } from './model.mjs';

const run = (at, options) =>
  all(query({ prompt: 'go', options: { pathToClaudeCodeExecutable: binary, cwd: at.work, env: at.env, ...options } }));

const decided = (permissionDecision, more = {}) => ({
  hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, permissionDecisionReason: 'because', ...more },
});

const TOUCH = ['Bash', { command: 'touch made' }];
const NOTE = ['Write', { file_path: 'made', content: 'x' }];
const free = { permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true };

/** Scripts may only be written to one folder. */
const onlyScripts = async ({ tool_name, tool_input }) => {
  if (!['Write', 'Edit', 'MultiEdit'].includes(tool_name)) return { continue: true };
  const path = tool_input.file_path ?? '';
  if (/\.(js|ts)$/.test(path) && !path.includes('scripts/')) {
    return { decision: 'block', stopReason: 'scripts belong to scripts/', continue: false, ...decided('deny') };
  }
  return { continue: true };
};

/** Commands that remove things are forbidden. */
const noRemoval = async ({ tool_input }) => (/\brm\b/.test(tool_input.command ?? '') ? decided('deny') : {});

const guards = [
  ['a command by its text', 'Bash', noRemoval, ['Bash', { command: 'rm kept; touch forbidden' }], TOUCH],
  ['a command by an expression', 'Ba.*|mcp__.*', noRemoval, ['Bash', { command: 'rm kept; touch forbidden' }], TOUCH],
  ['a command, whatever the tool', undefined, noRemoval, ['Bash', { command: 'rm kept; touch forbidden' }], TOUCH],
  [
    'a file by any tool that writes',
    'Edit|Write',
    async ({ tool_input }) => (tool_input.file_path?.endsWith('.env') ? decided('deny') : {}),
    ['Edit', { file_path: '.env', old_string: 'KEY', new_string: 'forbidden' }],
    NOTE,
  ],
  ['the web', 'WebFetch|WebSearch', async () => decided('deny'), ['WebFetch', { url: 'http://127.0.0.1:1/', prompt: 'p' }], NOTE],
  ['the web by an expression', 'Web.*', async () => decided('deny'), ['WebFetch', { url: 'http://127.0.0.1:1/', prompt: 'p' }], NOTE],
  ['sub-agents', 'Task|Agent', async () => decided('deny'), ['Task', { description: 'd', prompt: 'p' }], NOTE],
];

for (const [name, matcher, hook, forbidden, harmless] of guards) {
  test(`a hook that is written for Claude's names fires: ${name}`, async (t) => {
    const at = await place(t, [say(call(...forbidden, 'c1')), say(call(...harmless, 'c2')), say('done')]);
    writeFileSync(join(at.work, 'kept'), '');
    writeFileSync(join(at.work, '.env'), 'KEY=1\n');
    const fired = [];
    const seen = async (told) => {
      const answer = await hook(told);
      if (answer.hookSpecificOutput) fired.push(told.tool_name);
      return answer;
    };
    const end = result(await run(at, { ...free, hooks: { PreToolUse: [{ ...(matcher && { matcher }), hooks: [seen] }] } }));
    assert.deepEqual(fired, [forbidden[0]]);
    assert.equal(end.result, 'done');
    assert.ok(existsSync(join(at.work, 'kept')) && existsSync(join(at.work, 'made')) && !existsSync(join(at.work, 'forbidden')));
    assert.equal(readFileSync(join(at.work, '.env'), 'utf8'), 'KEY=1\n');
  });
}

test('a hook that forbids and ends the run does both', async (t) => {
  const at = await place(t, [say(call('Write', { file_path: 'a.ts', content: 'x' })), say(call(...NOTE)), say('done')]);
  const ended = run(at, { ...free, hooks: { PreToolUse: [{ matcher: 'Write|Edit|MultiEdit', hooks: [onlyScripts] }] } });
  await assert.rejects(ended, /scripts belong to scripts/);
  assert.ok(!existsSync(join(at.work, 'a.ts')) && !existsSync(join(at.work, 'made')));
});

test('a hook changes the input under the names of Claude', async (t) => {
  const at = await place(t, [say(call('Bash', { command: 'touch made', description: 'd' })), say('done')]);
  const hook = async ({ tool_input }) => decided('allow', { updatedInput: { ...tool_input, command: 'touch changed' } });
  await run(at, { hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [hook] }] } });
  assert.ok(existsSync(join(at.work, 'changed')) && !existsSync(join(at.work, 'made')));
});

test('a permission callback decides by the names of Claude', async (t) => {
  const at = await place(t, [
    say(call('Bash', { command: 'touch forbidden' }, 'c1')),
    say(call('Write', { file_path: 'made', content: 'x' }, 'c2')),
    say('done'),
  ]);
  const asked = [];
  const canUseTool = async (name, input) => {
    asked.push([name, Object.keys(input).sort().join()]);
    return name === 'Bash' ? { behavior: 'deny', message: 'no shell' } : { behavior: 'allow', updatedInput: input };
  };
  const end = result(await run(at, { canUseTool }));
  assert.deepEqual(asked, [['Bash', 'command'], ['Write', 'content,file_path']]);
  assert.ok(existsSync(join(at.work, 'made')) && !existsSync(join(at.work, 'forbidden')));
  assert.deepEqual(end.permission_denials.map((denial) => denial.tool_name), ['Bash']);
});

test('lists of tools hold', async (t) => {
  const at = await place(t, [say(call(...TOUCH)), say(call('Write', { file_path: 'other', content: 'x' })), say('done')]);
  const messages = await run(at, { ...free, disallowedTools: ['Bash', 'WebSearch', 'NotebookEdit'] });
  const { tools } = messages.find((message) => message.subtype === 'init');
  assert.ok(!tools.includes('Bash') && !tools.includes('NotebookEdit') && tools.includes('Edit'), `${tools}`);
  assert.ok(!existsSync(join(at.work, 'made')) && existsSync(join(at.work, 'other')));
});
