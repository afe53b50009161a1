// Guards as the examples of Qwen Code's TypeScript SDK write them, with its names of tools and its older spellings.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { query } from '@qwen-code/sdk';
import { all, binary, call, place, result, say } from './model.mjs';

const run = (at, options) => all(query({ prompt: 'go', options: { pathToQwenExecutable: binary, cwd: at.work, env: at.env, ...options } }));

const TOUCH = ['run_shell_command', { command: 'touch made' }];

test('a permission callback decides by the names of Qwen Code', async (t) => {
  const at = await place(t, [
    say(call('run_shell_command', { command: 'touch forbidden' }, 'c1')),
    say(call('write_file', { file_path: 'made', content: 'x' }, 'c2')),
    say('done'),
  ]);
  const asked = [];
  const canUseTool = async (name, input) => {
    asked.push(name);
    if (name.startsWith('read_')) return { behavior: 'allow', updatedInput: input };
    if (name === 'write_file') return { behavior: 'allow', updatedInput: { ...input, content: 'changed' } };
    return { behavior: 'deny', message: 'not this one' };
  };
  const end = result(await run(at, { canUseTool, permissionMode: 'default' }));
  assert.deepEqual(asked, ['run_shell_command', 'write_file']);
  assert.ok(existsSync(join(at.work, 'made')) && !existsSync(join(at.work, 'forbidden')));
  assert.deepEqual(end.permission_denials.map((denial) => denial.tool_name), ['run_shell_command']);
});

for (const excludeTools of [['run_shell_command'], ['ShellTool'], ['ShellTool(touch )'], ['run_shell_command(touch)'], ['Bash(touch *)']]) {
  test(`an excluded tool does not run in any mode: ${excludeTools}`, async (t) => {
    const at = await place(t, [say(call(...TOUCH)), say(call('write_file', { file_path: 'other', content: 'x' })), say('done')]);
    await run(at, { excludeTools, permissionMode: 'yolo' });
    assert.ok(!existsSync(join(at.work, 'made')) && existsSync(join(at.work, 'other')));
  });
}

for (const allowedTools of [['ShellTool(touch made)'], ['run_shell_command(touch *)'], ['Bash(touch:*)']]) {
  test(`an allowed command runs without a question, and no other: ${allowedTools}`, async (t) => {
    const at = await place(t, [say(call(...TOUCH)), say(call('run_shell_command', { command: 'mkdir other' })), say('done')]);
    await run(at, { allowedTools, permissionMode: 'default' });
    assert.ok(existsSync(join(at.work, 'made')) && !existsSync(join(at.work, 'other')));
  });
}

test('a list of core tools is all that there is', async (t) => {
  const at = await place(t, [say(call(...TOUCH)), say('done')]);
  const messages = await run(at, { coreTools: ['read_file', 'ListFiles', 'edit'], permissionMode: 'yolo' });
  assert.deepEqual(messages.find((message) => message.subtype === 'init').tools.filter((name) => name !== 'agent'), ['read_file', 'edit', 'list_directory']);
  assert.ok(!existsSync(join(at.work, 'made')));
});
