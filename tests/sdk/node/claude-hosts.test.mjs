// Claude's TypeScript SDK: options by which a host says who decides, and which tools are meant.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';
import { all, binary, call, place, result, say } from './model.mjs';

const ask = (at, options) =>
  all(query({ prompt: 'hi', options: { pathToClaudeCodeExecutable: binary, cwd: at.work, env: at.env, ...options } }));

test('where nobody answers nobody is asked', async (t) => {
  const at = await place(t, [say(call('write_file', { file_path: 'made', content: 'text' })), say('done')]);
  let asked = 0;
  const canUseTool = async (_, input) => {
    asked += 1;
    return { behavior: 'allow', updatedInput: input };
  };
  const messages = await ask(at, { permissionPrompts: 'none', canUseTool });
  assert.equal(result(messages).permission_denials.length, 1);
  assert.equal(asked, 0);
  assert(!existsSync(join(at.work, 'made')));
});

test('settings of the host that forbid hold in every mode, and those that allow are named', async (t) => {
  const at = await place(t, [say(call('run_shell_command', { command: 'ls' })), say('done')]);
  const errors = [];
  await ask(at, {
    managedSettings: { permissions: { deny: ['Bash(ls *)'], allow: ['Write'] } },
    permissionMode: 'bypassPermissions',
    allowDangerouslySkipPermissions: true,
    stderr: (data) => errors.push(data),
  });
  assert.match((await at.results())[0], /denies it/);
  assert.match(errors.join(''), /managed-settings: "permissions" is ignored/);
});

for (const name of ['Bash', 'run_shell_command']) {
  test(`a call of ${name} goes to the tool that stands for it`, async (t) => {
    const at = await place(t, [say(call(name, { command: 'touch made' })), say('done')]);
    const seen = [];
    const bash = tool('bash', 'Runs elsewhere.', { command: z.string() }, async (input) => {
      seen.push(input);
      return { content: [{ type: 'text', text: 'elsewhere' }] };
    });
    const hooked = [];
    await ask(at, {
      mcpServers: { ws: createSdkMcpServer({ name: 'ws', tools: [bash] }) },
      toolAliases: { Bash: 'mcp__ws__bash' },
      allowedTools: ['mcp__ws__bash'],
      hooks: { PreToolUse: [{ hooks: [async (input) => (hooked.push(input.tool_name), {})] }] },
    });
    assert.deepEqual([seen, await at.results(), hooked], [[{ command: 'touch made' }], ['elsewhere'], ['mcp__ws__bash']]);
    assert(!existsSync(join(at.work, 'made')));
  });
}

test('what a host asks for and nothing is done about is named', async (t) => {
  const at = await place(t, [say('done')]);
  const errors = [];
  const hooks = { TeammateIdle: [{ hooks: [async () => ({})] }], Stop: [{ hooks: [async () => ({})] }] };
  await ask(at, { title: 'A title', promptSuggestions: true, hooks, stderr: (data) => errors.push(data) });
  assert.match(errors.join(''), /promptSuggestions is accepted and changes nothing here/);
  assert.match(errors.join(''), /title is accepted and changes nothing here/);
  assert.deepEqual(errors.join('').match(/hooks for the event \w+ never run here/g), ['hooks for the event TeammateIdle never run here']);
});
