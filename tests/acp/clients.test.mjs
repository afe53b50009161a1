// `qwen --acp` through the official TypeScript SDK and through acpx. Every line of the agent is validated against the schema of
// the SDK's package.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { client, ndJsonStream } from '@agentclientprotocol/sdk';
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const QWEN = process.env.QWEN_BIN;
const packageRoot = join(dirname(createRequire(import.meta.url).resolve('@agentclientprotocol/sdk')), '../../..');
const schema = JSON.parse(readFileSync(join(packageRoot, 'schema/v1/schema.json'), 'utf8'));

const ajv = new Ajv({ strict: false, allErrors: true });
addFormats(ajv);
for (const format of ['uint', 'uint16', 'uint32', 'uint64', 'int32', 'int64', 'double']) ajv.addFormat(format, true);
ajv.addSchema({ ...schema, $id: 'acp' });
const definition = (name) => ajv.getSchema(`acp#/$defs/${name}`);

const PARAMS = {
  'session/update': 'SessionNotification',
  'session/request_permission': 'RequestPermissionRequest',
  'elicitation/create': 'CreateElicitationRequest',
};
const RESULTS = {
  initialize: 'InitializeResponse',
  authenticate: 'AuthenticateResponse',
  'session/new': 'NewSessionResponse',
  'session/load': 'LoadSessionResponse',
  'session/resume': 'ResumeSessionResponse',
  'session/list': 'ListSessionsResponse',
  'session/prompt': 'PromptResponse',
  'session/set_mode': 'SetSessionModeResponse',
  'session/set_config_option': 'SetSessionConfigOptionResponse',
};

/** Fails unless a message of the agent is one of the schema. */
function validate(message, methods) {
  assert.equal(message.jsonrpc, '2.0');
  const method = message.method ?? methods.get(message.id);
  const name = message.method ? PARAMS[method] : message.result && RESULTS[method];
  const check = name && definition(name);
  if (!check) return;
  const value = message.method ? message.params : message.result;
  assert.ok(check(value), `${name}: ${JSON.stringify(check.errors)}\n${JSON.stringify(value)}`);
}

const call = (name, args) => ({ tool_call: { name, arguments: args } });

function start(script, capabilities, { option = 'allow_once', flags = [] } = {}) {
  const home = mkdtempSync(join(tmpdir(), 'acp-home-'));
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'acp-cwd-')));
  const path = join(home, 'script.json');
  writeFileSync(path, JSON.stringify(script));
  const env = { HOME: home, QWEN_HOME: join(home, '.qwen'), PATH: process.env.PATH };
  const child = spawn(QWEN, ['--acp', '--model', `script:${path}`, ...flags], { env, cwd, stdio: ['pipe', 'pipe', 'inherit'] });
  const methods = new Map();
  const seen = { updates: [], requests: [], messages: 0 };
  const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const sent = new TransformStream({
    transform(message, controller) {
      if (message.method && message.id !== undefined) methods.set(message.id, message.method);
      controller.enqueue(message);
    },
  });
  const received = new TransformStream({
    transform(message, controller) {
      seen.messages += 1;
      try {
        validate(message, methods);
      } catch (error) {
        seen.invalid ??= error;
      }
      controller.enqueue(message);
    },
  });
  sent.readable.pipeTo(stream.writable).catch(() => {});
  const app = client({ name: 'test' })
    .onNotification('session/update', ({ params }) => void seen.updates.push(params.update))
    .onRequest('session/request_permission', ({ params }) => {
      seen.requests.push(params);
      return { outcome: option === 'cancelled' ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: option } };
    })
    .onRequest('elicitation/create', ({ params }) => {
      seen.requests.push(params);
      return { action: 'accept', content: { answer_1: 'blue' } };
    });
  const connection = app.connect({ writable: sent.writable, readable: stream.readable.pipeThrough(received) });
  const agent = connection.agent ?? connection;
  const ended = new Promise((resolve) => child.on('exit', resolve));
  return {
    agent, seen, cwd, home, child,
    made: (name) => existsSync(join(cwd, name)),
    kinds: () => new Set(seen.updates.map((update) => update.sessionUpdate)),
    text: () => seen.updates.filter((update) => update.sessionUpdate === 'agent_message_chunk').map((update) => update.content.text).join(''),
    async open() {
      await agent.request('initialize', { protocolVersion: 1, clientCapabilities: capabilities });
      return agent.request('session/new', { cwd, mcpServers: [] });
    },
    prompt: (sessionId, prompt) => agent.request('session/prompt', { sessionId, prompt }),
    async close() {
      child.stdin.end();
      assert.equal(await ended, 0);
      if (seen.invalid) throw seen.invalid;
      assert.ok(seen.messages > 0);
    },
  };
}

const NOTHING = {};
const EVERYTHING = {
  fs: { readTextFile: true, writeTextFile: true },
  terminal: true,
  elicitation: { form: {}, url: {} },
  session: { notices: {}, compaction: {}, configOptions: { boolean: {} } },
  auth: { terminal: true },
  _meta: { terminal_output: true, 'subagent-transcript': {} },
};
const TOUCH = [[{ text: 'I look. ' }, call('run_shell_command', { command: 'touch made' })], [{ text: 'Done.' }], [{ text: 'More.' }]];
const say = (text) => [{ type: 'text', text }];

for (const [who, capabilities] of [['nothing', NOTHING], ['everything', EVERYTHING]]) {
  for (const option of ['allow_once', 'allow_session', 'allow_always', 'reject_once', 'reject_session']) {
    test(`permission option ${option}, a client that advertises ${who}`, async () => {
      const editor = start(TOUCH, capabilities, { option });
      const { sessionId } = await editor.open();
      const result = await editor.prompt(sessionId, say('Go'));
      assert.equal(result.stopReason, 'end_turn');
      assert.equal(editor.made('made'), option.startsWith('allow'));
      assert.equal(editor.text(), 'I look. Done.');
      await editor.close();
    });
  }

  test(`a cancelled permission request, a client that advertises ${who}`, async () => {
    const editor = start(TOUCH, capabilities, { option: 'cancelled' });
    const { sessionId } = await editor.open();
    assert.equal((await editor.prompt(sessionId, say('Go'))).stopReason, 'cancelled');
    await editor.close();
  });

  const KINDS = {
    agent_thought_chunk: [[{ thought: 'hm' }, { text: 'x' }]],
    tool_call: [[call('glob', { pattern: '*' })], [{ text: 'x' }]],
    tool_call_update: [[call('glob', { pattern: '*' })], [{ text: 'x' }]],
    plan: [[call('todo_write', { todos: [{ id: '1', content: 'a', status: 'pending' }] })], [{ text: 'x' }]],
    usage_update: [[{ text: 'x' }, { usage: { prompt_tokens: 12, completion_tokens: 3 } }]],
    session_info_update: [[{ text: 'x' }]],
    available_commands_update: [[{ text: 'x' }]],
  };
  for (const [kind, script] of Object.entries(KINDS)) {
    test(`update ${kind}, a client that advertises ${who}`, async () => {
      const editor = start(script, capabilities);
      const { sessionId } = await editor.open();
      assert.equal((await editor.prompt(sessionId, say('Go'))).stopReason, 'end_turn');
      assert.ok(editor.kinds().has(kind), [...editor.kinds()].join());
      await editor.close();
    });
  }

  const BLOCKS = {
    text: { type: 'text', text: 'Hi' },
    image: { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' },
    resource_link: { type: 'resource_link', uri: 'file:///w/a.rs', name: 'a.rs' },
    resource: { type: 'resource', resource: { uri: 'file:///w/a.rs', text: 'fn a() {}' } },
  };
  for (const [name, block] of Object.entries(BLOCKS)) {
    test(`content block ${name}, a client that advertises ${who}`, async () => {
      const editor = start([[{ text: 'x' }]], capabilities);
      const { sessionId } = await editor.open();
      assert.equal((await editor.prompt(sessionId, [block])).stopReason, 'end_turn');
      await editor.close();
    });
  }

  test(`every method of a session, a client that advertises ${who}`, async () => {
    const editor = start(TOUCH, capabilities);
    const { sessionId, modes, configOptions } = await editor.open();
    const { agent, cwd } = editor;
    await agent.request('authenticate', { methodId: 'model-key' });
    await editor.prompt(sessionId, say('Go'));
    assert.equal(modes.currentModeId, 'default');
    assert.deepEqual(configOptions.map((option) => option.category), ['mode', 'model', 'thought_level']);
    await agent.request('session/set_mode', { sessionId, modeId: 'auto-edit' });
    const set = await agent.request('session/set_config_option', { sessionId, configId: 'thought_level', value: 'low' });
    assert.equal(set.configOptions[0].currentValue, 'auto-edit');
    assert.equal(set.configOptions[2].currentValue, 'low');
    const listed = await agent.request('session/list', { cwd });
    assert.deepEqual(listed.sessions.map((row) => row.sessionId), [sessionId]);
    await agent.request('session/close', { sessionId });
    editor.seen.updates.length = 0;
    await agent.request('session/load', { sessionId, cwd, mcpServers: [] });
    assert.equal(editor.text(), 'I look. Done.');
    await agent.request('session/close', { sessionId });
    editor.seen.updates.length = 0;
    await agent.request('session/resume', { sessionId, cwd });
    assert.equal(editor.text(), '');
    await agent.request('session/delete', { sessionId });
    assert.deepEqual((await agent.request('session/list', {})).sessions, []);
    assert.ok(editor.kinds().size <= 1, [...editor.kinds()].join());
    await editor.close();
  });

  test(`a session that does not exist, a client that advertises ${who}`, async () => {
    const editor = start([], capabilities);
    await editor.open();
    const load = editor.agent.request('session/load', { sessionId: 'none', cwd: editor.cwd, mcpServers: [] });
    await assert.rejects(load, (error) => error.code === -32002);
    await editor.close();
  });

  test(`a model error, a client that advertises ${who}`, async () => {
    const editor = start([], capabilities);
    const { sessionId } = await editor.open();
    await assert.rejects(editor.prompt(sessionId, say('Go')), (error) => error.code === -32603);
    await editor.close();
  });
}

test('output of a command in a display-only terminal', async () => {
  const editor = start([[call('run_shell_command', { command: 'echo hi' })], [{ text: 'x' }]], EVERYTHING);
  const { sessionId } = await editor.open();
  await editor.prompt(sessionId, say('Go'));
  const meta = editor.seen.updates.map((update) => update._meta ?? {});
  assert.ok(meta.some((found) => found.terminal_info) && meta.some((found) => found.terminal_exit));
  await editor.close();
});

test('a question as a form', async () => {
  const question = { questions: [{ question: 'Which?', options: [{ label: 'red' }, { label: 'blue' }] }] };
  const editor = start([[call('ask_user_question', question)], [{ expect: { contains: 'blue' } }, { text: 'x' }]], EVERYTHING);
  const { sessionId } = await editor.open();
  assert.equal((await editor.prompt(sessionId, say('Go'))).stopReason, 'end_turn');
  assert.equal(editor.seen.requests[0].mode, 'form');
  await editor.close();
});

test('steering while idle asks for a prompt', async () => {
  const editor = start([[{ text: 'x' }]], NOTHING);
  const { sessionId } = await editor.open();
  const steered = await editor.agent.request('_session/steering', { sessionId, prompt: say('x') });
  assert.equal(steered.outcome, 'promptRequired');
  await editor.close();
});

test('token usage of a prompt on request', async () => {
  const script = [[{ text: 'x' }, { usage: { prompt_tokens: 12, completion_tokens: 3 } }]];
  const editor = start(script, NOTHING, { flags: ['--acp-unstable', 'usage'] });
  const { sessionId } = await editor.open();
  await editor.prompt(sessionId, say('Go'));
  await editor.close();
});

const run = promisify(execFile);

async function acpx(script, flags) {
  const home = mkdtempSync(join(tmpdir(), 'acpx-home-'));
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'acpx-cwd-')));
  const path = join(home, 'script.json');
  writeFileSync(path, JSON.stringify(script));
  const env = { HOME: home, QWEN_HOME: join(home, '.qwen'), PATH: process.env.PATH };
  const args = ['--agent', `${QWEN} --acp --model script:${path}`, '--cwd', cwd, ...flags, 'exec', 'Go'];
  return { cwd, ...(await run(process.execPath, [process.env.ACPX, ...args], { env, cwd, timeout: 60_000 })) };
}

test('acpx shows the answer', async () => {
  const { stdout } = await acpx([[{ text: 'Hello from the script.' }]], ['--format', 'quiet']);
  assert.match(stdout, /Hello from the script\./);
});

test('acpx approves and denies calls', async () => {
  for (const [flag, made] of [['--approve-all', true], ['--deny-all', false]]) {
    const { cwd } = await acpx(TOUCH, [flag, '--format', 'json']).catch((error) => ({ cwd: error.options?.cwd, error }));
    if (cwd) assert.equal(existsSync(join(cwd, 'made')), made, flag);
    else assert.equal(made, false, 'acpx reports a denied call by its exit code');
  }
});
