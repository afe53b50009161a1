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

const branches = (type) => [...(type.oneOf ?? []), ...(type.anyOf ?? []), ...(type.allOf ?? [])];
const referenced = (type) => [type, ...branches(type)].flatMap((part) => part.$ref ?? []).map((ref) => ref.split('/').at(-1));

/** Forbids keys that a type does not have at its root. A type that is a part of another one is closed with that one. */
function close(definitions) {
  const types = Object.entries(definitions);
  const isComposed = (type) => branches(type).length > 0 && [type, ...branches(type)].some((part) => part.properties);
  const parts = new Set(types.filter(([, type]) => isComposed(type)).flatMap(([, type]) => branches(type).flatMap(referenced)));
  for (const [name, type] of types) {
    if (!parts.has(name) && (type.properties || isComposed(type))) type.unevaluatedProperties ??= false;
  }
  assert.ok(definitions.ToolCallUpdate && definitions.SessionUpdate.unevaluatedProperties === false);
}

const ajv = new Ajv({ strict: false, allErrors: true });
addFormats(ajv);
for (const format of ['uint', 'uint16', 'uint32', 'uint64', 'int32', 'int64', 'double']) ajv.addFormat(format, true);
close(schema.$defs);
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
  'session/close': 'CloseSessionResponse',
  'session/delete': 'DeleteSessionResponse',
  'session/set_mode': 'SetSessionModeResponse',
  'session/set_config_option': 'SetSessionConfigOptionResponse',
};

/** Fails unless a message of the agent is one of the schema. */
function validate(message, methods, seen) {
  assert.equal(message.jsonrpc, '2.0');
  const method = message.method ?? methods.get(message.id);
  const name = message.method ? PARAMS[method] : message.result && RESULTS[method];
  const check = name && definition(name);
  if (!check) return;
  const value = message.method ? message.params : message.result;
  seen.add(name);
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
  const seen = { updates: [], requests: [], messages: 0, types: new Set() };
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
        validate(message, methods, seen.types);
      } catch (error) {
        seen.invalid ??= error;
      }
      controller.enqueue(message);
    },
  });
  sent.readable.pipeTo(stream.writable).catch(() => {});
  const app = client({ name: 'test' })
    .onNotification('session/update', ({ params }) => {
      seen.updates.push(params.update);
      seen.wake?.();
    })
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
    /** Waits until something holds, which an update changes. */
    async until(holds) {
      while (!holds()) await new Promise((resolve) => (seen.wake = resolve));
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
    agent_message_chunk: [[{ text: 'x' }]],
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

  test(`update user_message_chunk, a client that advertises ${who}`, async () => {
    const editor = start([[{ text: 'x' }]], capabilities);
    const { sessionId } = await editor.open();
    await editor.prompt(sessionId, say('Go'));
    assert.ok(!editor.kinds().has('user_message_chunk'), 'the client shows its own messages');
    await editor.agent.request('session/close', { sessionId });
    await editor.agent.request('session/load', { sessionId, cwd: editor.cwd, mcpServers: [] });
    assert.ok(editor.kinds().has('user_message_chunk'));
    await editor.close();
  });

  for (const [kind, set] of [
    ['current_mode_update', ['session/set_mode', { modeId: 'plan' }]],
    ['config_option_update', ['session/set_config_option', { configId: 'model', value: 'other' }]],
  ]) {
    test(`update ${kind}, a client that advertises ${who}`, async () => {
      const editor = start([[{ text: 'x' }]], capabilities);
      const { sessionId } = await editor.open();
      await editor.agent.request(set[0], { sessionId, ...set[1] });
      await editor.prompt(sessionId, say('/stats'));
      assert.ok(editor.kinds().has(kind), [...editor.kinds()].join());
      await editor.close();
    });
  }

  test(`update notice, a client that advertises ${who}`, async () => {
    const editor = start([[{ error: { status: 503, message: 'busy', retry_after: 0 } }], [{ text: 'x' }]], capabilities);
    const { sessionId } = await editor.open();
    assert.equal((await editor.prompt(sessionId, say('Go'))).stopReason, 'end_turn');
    assert.equal(editor.kinds().has('notice'), who === 'everything');
    await editor.close();
  });

  test(`update compaction_update, a client that advertises ${who}`, async () => {
    const editor = start([[{ text: 'x' }], [{ text: 'A summary.' }]], capabilities);
    const { sessionId } = await editor.open();
    await editor.prompt(sessionId, say('Go'));
    assert.equal((await editor.prompt(sessionId, say('/compress'))).stopReason, 'end_turn');
    assert.equal(editor.kinds().has('compaction_update'), who === 'everything');
    await editor.close();
  });

  const REASONS = {
    end_turn: [[{ text: 'x' }]],
    max_tokens: [[{ text: 'x' }, { finish: 'length' }], [{ text: 'x' }, { finish: 'length' }], [{ text: 'x' }, { finish: 'length' }], [{ text: 'x' }, { finish: 'length' }]],
    refusal: [[{ text: 'x' }, { finish: 'content_filter' }]],
    max_turn_requests: [[call('glob', { pattern: '*' })], [{ text: 'x' }]],
  };
  for (const [reason, script] of Object.entries(REASONS)) {
    test(`stop reason ${reason}, a client that advertises ${who}`, async () => {
      const flags = reason === 'max_turn_requests' ? ['--max-turns', '1'] : [];
      const editor = start(script, capabilities, { flags });
      const { sessionId } = await editor.open();
      assert.equal((await editor.prompt(sessionId, say('Go'))).stopReason, reason);
      await editor.close();
    });
  }

  test(`stop reason cancelled, a client that advertises ${who}`, async () => {
    const editor = start([[{ text: 'x' }, { wait_for_file: '/nonexistent/file' }]], capabilities);
    const { sessionId } = await editor.open();
    const prompt = editor.prompt(sessionId, say('Go'));
    await editor.until(() => editor.text() === 'x');
    await editor.agent.notify('session/cancel', { sessionId });
    assert.equal((await prompt).stopReason, 'cancelled');
    await editor.close();
  });

  test(`a session that is loaded during its prompt, a client that advertises ${who}`, async () => {
    const gate = join(mkdtempSync(join(tmpdir(), 'acp-gate-')), 'open');
    const editor = start([[{ text: 'half ' }, { wait_for_file: gate }, { text: 'done' }]], capabilities);
    const { sessionId } = await editor.open();
    const prompt = editor.prompt(sessionId, say('Go'));
    await editor.until(() => editor.text() === 'half ');
    editor.seen.updates.length = 0;
    await editor.agent.request('session/load', { sessionId, cwd: editor.cwd, mcpServers: [] });
    assert.equal(editor.text(), 'half ');
    assert.ok(editor.kinds().has('user_message_chunk'));
    writeFileSync(gate, '');
    assert.equal((await prompt).stopReason, 'end_turn');
    assert.equal(editor.text(), 'half done');
    await editor.close();
  });

  test(`tool content diff, a client that advertises ${who}`, async () => {
    const editor = start([[call('write_file', { file_path: 'new.txt', content: 'a\n' })], [{ text: 'x' }]], capabilities);
    const { sessionId } = await editor.open();
    await editor.prompt(sessionId, say('Go'));
    const contents = editor.seen.updates.flatMap((update) => update.content ?? []);
    assert.ok(contents.some((content) => content.type === 'diff' && content.newText === 'a\n'));
    assert.ok(editor.seen.requests[0].toolCall.content.some((content) => content.type === 'diff'));
    await editor.close();
  });

  test(`plan approval, a client that advertises ${who}`, async () => {
    const editor = start([[call('exit_plan_mode', { plan: 'Do it.' })], [{ text: 'x' }]], capabilities, { option: 'auto-edit' });
    const { sessionId } = await editor.open();
    await editor.agent.request('session/set_mode', { sessionId, modeId: 'plan' });
    await editor.prompt(sessionId, say('Go'));
    assert.equal(editor.seen.requests[0].toolCall.kind, 'switch_mode');
    const modes = editor.seen.updates.filter((update) => update.sessionUpdate === 'current_mode_update');
    assert.equal(modes.at(-1).currentModeId, 'auto-edit');
    await editor.close();
  });

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

test('a form with a choice of several', async () => {
  const questions = [
    { question: 'Which?', header: 'W', multiSelect: true, options: [{ label: 'red', description: 'r' }, { label: 'blue' }] },
    { question: 'Why?', header: 'Y', options: [{ label: 'a' }, { label: 'b' }] },
  ];
  const editor = start([[call('ask_user_question', { questions })], [{ text: 'x' }]], EVERYTHING);
  const { sessionId } = await editor.open();
  assert.equal((await editor.prompt(sessionId, say('Go'))).stopReason, 'end_turn');
  assert.equal(editor.seen.requests[0].requestedSchema.properties.answer_1.type, 'array');
  await editor.close();
});

test('a nested transcript of a sub-agent', async () => {
  const agent = { subagent_type: 'general-purpose', description: 'Look', prompt: 'look around' };
  const editor = start([{ match: 'look around', steps: [{ text: 'Nested.' }] }, [call('agent', agent)], [{ text: 'Done.' }]], EVERYTHING);
  const { sessionId } = await editor.open();
  await editor.prompt(sessionId, say('Go'));
  const nested = editor.seen.updates.filter((update) => update._meta?.claudeCode?.parentToolUseId);
  assert.ok(nested.some((update) => update.content?.text === 'Nested.'), JSON.stringify(nested));
  await editor.close();
});

test('unknown methods and versions', async () => {
  const editor = start([], NOTHING);
  const initialized = await editor.agent.request('initialize', { protocolVersion: 65535, clientCapabilities: {} });
  assert.equal(initialized.protocolVersion, 1);
  assert.ok(initialized.authMethods.length > 0);
  await assert.rejects(editor.agent.request('_unknown/method', {}), (error) => error.code === -32601);
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
  const result = await editor.prompt(sessionId, say('Go'));
  assert.equal(result.usage?.inputTokens ?? 12, 12);
  // It is not a part of version 1, which is why it needs the flag.
  assert.match(editor.seen.invalid.message, /PromptResponse.*"unevaluatedProperty":"usage"/);
  editor.seen.invalid = undefined;
  await editor.close();
});

const run = promisify(execFile);

async function acpx(script, flags, cwd = realpathSync(mkdtempSync(join(tmpdir(), 'acpx-cwd-')))) {
  const home = mkdtempSync(join(tmpdir(), 'acpx-home-'));
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

test('acpx approves calls', async () => {
  const { cwd } = await acpx(TOUCH, ['--approve-all', '--format', 'json']);
  assert.ok(existsSync(join(cwd, 'made')));
});

test('acpx denies calls', async () => {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'acpx-cwd-')));
  // A denied call is a failure of acpx, which it reports by its exit code.
  await acpx(TOUCH, ['--deny-all', '--format', 'json'], cwd).catch((error) => assert.ok(error.code > 0, String(error)));
  assert.ok(!existsSync(join(cwd, 'made')));
});
