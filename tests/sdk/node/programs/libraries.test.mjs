// Programs on node that are built around the Claude CLI, each with a turn, a tool call and what it has for permissions.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { claude } from '@instantlyeasy/claude-code-sdk-ts';
import { Output, generateText, streamText } from 'ai';
import { createClaudeCode } from 'ai-sdk-provider-claude-code';
import { z } from 'zod';
import { all, binary, call, place, say } from '../model.mjs';

const packages = join(import.meta.dirname, '../../node_modules');

/** A place where the program is found in PATH under the name `claude`. */
async function named(t, replies) {
  const at = await place(t, replies);
  const bin = join(at.home, 'bin');
  mkdirSync(bin);
  symlinkSync(binary, join(bin, 'claude'));
  return { ...at, env: { ...at.env, PATH: `${bin}:${at.env.PATH}` } };
}

const write = say(call('Write', { file_path: 'made', content: 'text' }));

// ai-sdk-provider-claude-code

const provider = (at, settings = {}) =>
  createClaudeCode({ defaultSettings: { pathToClaudeCodeExecutable: binary, cwd: at.work, env: at.env, ...settings } })('sonnet');

test('ai-sdk-provider-claude-code: a text is generated, with its usage', async (t) => {
  const at = await place(t, [say('Hello there.')]);
  const made = await generateText({ model: provider(at), prompt: 'hi' });
  assert.equal(made.text, 'Hello there.');
  assert.equal(made.finishReason, 'stop');
  assert(made.usage.outputTokens > 0);
});

test('ai-sdk-provider-claude-code: a text streams in pieces, and a tool call is reported', async (t) => {
  const at = await place(t, [write, say('all', ' done')]);
  const streamed = streamText({ model: provider(at, { permissionMode: 'acceptEdits' }), prompt: 'make it' });
  const parts = await all(streamed.fullStream);
  assert.deepEqual(parts.filter((part) => part.type === 'text-delta').map((part) => part.text), ['all', ' done']);
  assert.deepEqual(parts.filter((part) => part.type === 'tool-call').map((part) => part.toolName), ['Write']);
  assert.equal(parts.filter((part) => part.type === 'tool-result').length, 1);
  assert(existsSync(join(at.work, 'made')));
});

for (const behavior of ['allow', 'deny']) {
  test(`ai-sdk-provider-claude-code: the callback may ${behavior} a call`, async (t) => {
    const at = await place(t, [write, say('done')]);
    const asked = [];
    const canUseTool = async (name, input) => {
      asked.push(name);
      return behavior === 'allow' ? { behavior, updatedInput: input } : { behavior, message: 'no' };
    };
    await generateText({ model: provider(at, { canUseTool }), prompt: 'make it' });
    assert.deepEqual(asked, ['Write']);
    assert.equal(existsSync(join(at.work, 'made')), behavior === 'allow');
  });
}

test('ai-sdk-provider-claude-code: an object follows its schema', async (t) => {
  const at = await place(t, [say(call('StructuredOutput', { city: 'Oslo' })), say('done')]);
  const schema = z.object({ city: z.string() });
  const made = await generateText({ model: provider(at), prompt: 'which?', output: Output.object({ schema }) });
  assert.deepEqual(made.output, { city: 'Oslo' });
});

test('ai-sdk-provider-claude-code: an error of the model is an error of the call', async (t) => {
  const at = await place(t, [{ steps: [{ status: 400, body: { error: { message: 'bad request of the test' } } }] }]);
  await assert.rejects(generateText({ model: provider(at), prompt: 'hi', maxRetries: 0 }), /bad request of the test/);
});

// @instantlyeasy/claude-code-sdk-ts

/** A query of the fluent interface; it takes the environment of this process. */
function fluent(t, at) {
  const old = process.env;
  process.env = at.env;
  t.after(() => (process.env = old));
  return claude().inDirectory(at.work);
}

test('@instantlyeasy/claude-code-sdk-ts: a text, a session id and a further turn', async (t) => {
  const at = await named(t, [say('I will.'), say('42')]);
  const first = fluent(t, at).query('Remember 42.');
  assert.equal(await first.asText(), 'I will.');
  const id = await first.getSessionId();
  assert.equal(await claude().inDirectory(at.work).withSessionId(id).query('Which?').asText(), '42');
  assert.deepEqual(await at.history(), ['Remember 42.', 'I will.', 'Which?']);
});

test('@instantlyeasy/claude-code-sdk-ts: tools run without questions when permissions are skipped', async (t) => {
  const at = await named(t, [write, say('done')]);
  const messages = await fluent(t, at).skipPermissions().query('make it').asArray();
  const blocks = messages.filter((message) => message.type === 'assistant').flatMap((message) => message.content);
  assert.deepEqual(blocks.filter((block) => block.type === 'tool_use').map((block) => block.name), ['Write']);
  assert.equal(messages.at(-1).type, 'result');
  assert(existsSync(join(at.work, 'made')));
});

test('@instantlyeasy/claude-code-sdk-ts: allowed tools run and denied tools do not', async (t) => {
  const at = await named(t, [write, say(call('Bash', { command: 'touch touched' })), say('done')]);
  await fluent(t, at).allowTools('Write', 'Read').denyTools('Bash').query('make it').asText();
  assert.deepEqual([existsSync(join(at.work, 'made')), existsSync(join(at.work, 'touched'))], [true, false]);
});

// @steipete/claude-code-mcp

test('@steipete/claude-code-mcp: its tool runs a prompt that writes a file', async (t) => {
  const at = await named(t, [write, say('all done')]);
  const server = spawn(process.execPath, [join(packages, '@steipete/claude-code-mcp/dist/server.js')], {
    env: at.env,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const lines = createInterface(server.stdout)[Symbol.asyncIterator]();
  const request = async (id, method, params) => {
    server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return JSON.parse((await lines.next()).value);
  };
  t.after(() => server.kill());
  await request(1, 'initialize', { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 't', version: '1' } });
  const params = { name: 'claude_code', arguments: { prompt: 'make it', workFolder: at.work } };
  const answer = await request(2, 'tools/call', params);
  assert.deepEqual(answer.result?.content, [{ type: 'text', text: 'all done\n' }], JSON.stringify(answer));
  assert(existsSync(join(at.work, 'made')));
});

// ccusage

test('ccusage: it reads the usage of a session from its transcript', async (t) => {
  const at = await named(t, [say('I write.', call('Write', { file_path: 'made', content: 'text' })), say('done')]);
  const flags = ['-p', 'make it', '--model', 'claude-sonnet-4-5', '--dangerously-skip-permissions', '--output-format', 'json'];
  const { usage } = JSON.parse((await promisify(execFile)('claude', flags, { cwd: at.work, env: at.env })).stdout);
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(packages, 'ccusage/dist/index.js'), 'session', '--json', '--offline'],
    { cwd: at.work, env: { ...at.env, LOG_LEVEL: '0' } },
  );
  const report = JSON.parse(stdout);
  assert.equal(report.sessions.length, 1);
  assert(usage.input_tokens > 0 && usage.output_tokens > 0, stdout);
  assert.deepEqual([report.totals.inputTokens, report.totals.outputTokens], [usage.input_tokens, usage.output_tokens]);
});
