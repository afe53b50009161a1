// The official AG-UI client against `POST /ag-ui`.
import assert from 'node:assert/strict';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { HttpAgent } from '@ag-ui/client';

const url = process.env.QWEN_SERVE_URL;
const headers = { Authorization: `Bearer ${process.env.QWEN_SERVE_TOKEN}` };
const made = join(process.env.QWEN_SERVE_WORKSPACE, 'made.txt');
let threads = 0;

function agent(prompt) {
  threads += 1;
  const created = new HttpAgent({ url: `${url}/ag-ui`, headers, threadId: `thread-${process.pid}-${threads}` });
  created.addMessage({ id: `user-${threads}`, role: 'user', content: prompt });
  return created;
}

/** Runs once and returns the events. */
async function run(agent, input = {}) {
  const events = [];
  await agent.runAgent(input, { onEvent: ({ event }) => void events.push(event) });
  return events;
}

const outcome = (events) => events.at(-1).outcome;
const last = (agent) => agent.messages.at(-1);

test('a turn is a run: text, usage and an outcome', async () => {
  const helper = agent('say hello');
  const events = await run(helper);
  assert.equal(events[0].type, 'RUN_STARTED');
  assert.equal(outcome(events).type, 'success');
  assert.equal(events.at(-1).usage[0].outputTokens, 5);
  assert.equal(last(helper).content, 'Hello from qwen.');
});

test('a thread continues, with the history that the server has', async () => {
  const helper = agent('say hello');
  await run(helper);
  helper.addMessage({ id: 'second', role: 'user', content: 'and again' });
  await run(helper);
  assert.equal(last(helper).content, 'Hello again.');
});

test('an edited history is refused', async () => {
  const helper = agent('say hello');
  await run(helper);
  helper.messages[0].content = 'something else';
  helper.addMessage({ id: 'second', role: 'user', content: 'and again' });
  const events = [];
  await helper.runAgent({}, { onEvent: ({ event }) => void events.push(event) }).catch(() => {});
  assert.equal(events.at(-1).type, 'RUN_ERROR');
  assert.equal(events.at(-1).code, 'history_edited');
});

test('thoughts are reasoning', async () => {
  const kinds = (await run(agent('think first'))).map((event) => event.type);
  for (const kind of ['REASONING_START', 'REASONING_MESSAGE_CONTENT', 'REASONING_END']) assert.ok(kinds.includes(kind), kind);
});

test('the tools of the agent have results', async () => {
  const events = await run(agent('list the files'));
  const kinds = events.map((event) => event.type);
  for (const kind of ['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'TOOL_CALL_RESULT']) assert.ok(kinds.includes(kind), kind);
});

test('the page runs its own tools', async () => {
  const helper = agent('what is the weather');
  const tools = [{ name: 'get_weather', description: 'the weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } }];
  const first = await run(helper, { tools });
  assert.deepEqual(outcome(first), { type: 'success', pendingToolCallIds: ['call_weather'] });
  assert.ok(!first.some((event) => event.type === 'TOOL_CALL_RESULT'));
  helper.addMessage({ id: 'result', role: 'tool', toolCallId: 'call_weather', content: 'sunny' });
  const second = await run(helper, { tools });
  assert.equal(outcome(second).type, 'success');
  assert.equal(last(helper).content, 'It is sunny.');
});

async function interrupted() {
  rmSync(made, { force: true });
  const helper = agent('make a file');
  const events = await run(helper);
  const [interrupt] = outcome(events).interrupts;
  assert.equal(interrupt.reason, 'tool_call');
  assert.equal(interrupt.toolCallId, 'call_touch');
  assert.ok(!existsSync(made));
  return { helper, interrupt };
}

for (const [name, entry, exists] of [
  ['allow', { status: 'resolved', payload: { approved: true } }, true],
  ['deny', { status: 'resolved', payload: { approved: false } }, false],
  ['cancel', { status: 'cancelled' }, false],
]) {
  test(`an interrupt is resumed: ${name}`, async () => {
    const { helper, interrupt } = await interrupted();
    const events = await run(helper, { resume: [{ interruptId: interrupt.id, ...entry }] });
    assert.ok(!events.some((event) => event.type === 'TOOL_CALL_START'), 'the call is not repeated');
    assert.equal(events.find((event) => event.type === 'TOOL_CALL_RESULT').toolCallId, 'call_touch');
    assert.equal(outcome(events).type, 'success');
    assert.equal(existsSync(made), exists);
  });
}

test('an interrupt is resumed with edited arguments', async () => {
  const { helper, interrupt } = await interrupted();
  const edited = join(process.env.QWEN_SERVE_WORKSPACE, 'edited.txt');
  await run(helper, { resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: true, editedArgs: { command: 'touch edited.txt' } } }] });
  assert.ok(existsSync(edited) && !existsSync(made));
});

/** Posts an input as the client would, without its state. */
async function post(body) {
  const response = await fetch(`${url}/ag-ui`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ messages: [], tools: [], context: [], state: {}, forwardedProps: {}, runId: 'r', ...body }),
  });
  const events = (await response.text()).split('\n\n').filter((event) => event.startsWith('data: '));
  return events.map((event) => JSON.parse(event.slice(6)));
}

test('an interrupt without, with an unknown or with an invalid answer runs nothing', async () => {
  const { helper, interrupt } = await interrupted();
  const { threadId } = helper;
  const cases = [
    [{}, 'open_interrupt'],
    [{ resume: [{ interruptId: 'other', status: 'resolved', payload: { approved: true } }] }, 'unknown_interrupt'],
    [{ resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: 'yes' } }] }, 'invalid_resume'],
    [{ resume: [{ interruptId: interrupt.id, status: 'later' }] }, 'invalid_resume'],
  ];
  for (const [input, code] of cases) {
    const events = await post({ threadId, ...input });
    assert.deepEqual([events[0].type, events.at(-1).type, events.at(-1).code], ['RUN_STARTED', 'RUN_ERROR', code]);
  }
  assert.ok(!existsSync(made));
});

test('a repeated resume runs the tool once', async () => {
  const { helper, interrupt } = await interrupted();
  const resume = [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: true } }];
  const first = await post({ threadId: helper.threadId, resume });
  assert.equal(outcome(first).type, 'success');
  rmSync(made);
  const second = await post({ threadId: helper.threadId, resume });
  assert.equal(second.at(-1).type, 'RUN_ERROR');
  assert.ok(!existsSync(made));
});

test('an interrupt can be answered elsewhere', { timeout: 30_000 }, async () => {
  const { helper, interrupt } = await interrupted();
  const { approvals } = await (await fetch(`${url}/api/approvals`, { headers })).json();
  const session = approvals.find((approval) => approval.id === interrupt.id).session_id;
  const answered = await fetch(`${url}/api/approvals/${interrupt.id}`, {
    method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: '{"decision":"allow"}',
  });
  assert.equal(answered.status, 200);
  for (;;) {
    const { status } = await (await fetch(`${url}/api/sessions/${session}`, { headers })).json();
    if (status === 'idle') break;
  }
  assert.ok(existsSync(made));
});

test('several calls of one message that need permission are asked about one after the other', async () => {
  const files = ['first.txt', 'second.txt'].map((name) => join(process.env.QWEN_SERVE_WORKSPACE, name));
  for (const file of files) rmSync(file, { force: true });
  const helper = agent('two files');
  let events = await run(helper);
  for (const [at, call] of ['call_first', 'call_second'].entries()) {
    const [interrupt] = outcome(events).interrupts;
    assert.equal(interrupt.toolCallId, call);
    events = await run(helper, { resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: at === 1 } }] });
  }
  assert.equal(outcome(events).type, 'success');
  assert.deepEqual(files.map((file) => existsSync(file)), [false, true]);
});

test('an interrupt comes with what a resume needs', async () => {
  rmSync(made, { force: true });
  const helper = agent('make a file');
  helper.setState({ page: 'kept' });
  const events = await run(helper);
  const kinds = events.map(({ type }) => type);
  assert.deepEqual(kinds.slice(-3), ['STATE_SNAPSHOT', 'MESSAGES_SNAPSHOT', 'RUN_FINISHED']);
  assert.deepEqual(helper.state, { page: 'kept' });
  const call = helper.messages.flatMap(({ toolCalls = [] }) => toolCalls).find(({ id }) => id === 'call_touch');
  assert.deepEqual(JSON.parse(call.function.arguments), { command: 'touch made.txt' });
  assert.equal(helper.messages[0].content, 'make a file');
  const [interrupt] = outcome(events).interrupts;
  const resumed = await run(helper, { resume: [{ interruptId: interrupt.id, status: 'cancelled' }] });
  assert.equal(outcome(resumed).type, 'success');
  assert.equal(last(helper).content, 'File handled.');
});

test('a question of the agent is an interrupt with a form', async () => {
  const helper = agent('ask me');
  const [interrupt] = outcome(await run(helper)).interrupts;
  assert.equal(interrupt.reason, 'input_required');
  assert.equal(interrupt.message, 'Which colour?');
  const [field, { oneOf }] = Object.entries(interrupt.responseSchema.properties)[0];
  assert.deepEqual(oneOf.map((choice) => choice.const), ['red', 'blue']);
  const wrong = await post({ threadId: helper.threadId, resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: true } }] });
  assert.equal(wrong.at(-1).code, 'invalid_resume');
  const events = await run(helper, { resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { [field]: 'blue' } }] });
  assert.match(events.find(({ type }) => type === 'TOOL_CALL_RESULT').content, /blue/);
  assert.equal(last(helper).content, 'Thank you.');
});

test('an interrupt that was withdrawn has expired, and the thread goes on', async () => {
  const { helper, interrupt } = await interrupted();
  const { approvals } = await (await fetch(`${url}/api/approvals`, { headers })).json();
  const session = approvals.find((approval) => approval.id === interrupt.id).session_id;
  await fetch(`${url}/api/sessions/${session}/cancel`, { method: 'POST', headers });
  for (;;) {
    const { status } = await (await fetch(`${url}/api/sessions/${session}`, { headers })).json();
    if (status === 'idle') break;
  }
  const expired = await post({ threadId: helper.threadId, resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: true } }] });
  assert.equal(expired.at(-1).code, 'expired_interrupt');
  assert.ok(!existsSync(made));
  const next = await post({ threadId: helper.threadId, runId: 'next', messages: [{ id: 'n1', role: 'user', content: 'Please say hello' }] });
  assert.equal(outcome(next).type, 'success');
});

test('nodes are steps, sub-agents are runs, and the to-do list is the state', async () => {
  writeFileSync(join(process.env.QWEN_SERVE_WORKSPACE, 'parse.py'), "a = text.split(',')\n");
  const helper = agent('do everything');
  let events = await run(helper);
  const all = [...events];
  while (outcome(events).type === 'interrupt') {
    const resume = outcome(events).interrupts.map(({ id }) => ({ interruptId: id, status: 'resolved', payload: { approved: true } }));
    events = await run(helper, { resume });
    all.push(...events);
  }
  const kinds = new Set(all.map(({ type }) => type));
  for (const kind of ['STEP_STARTED', 'STEP_FINISHED', 'SUBAGENT_STARTED', 'SUBAGENT_FINISHED', 'STATE_SNAPSHOT', 'CUSTOM']) assert.ok(kinds.has(kind), kind);
  assert.equal(helper.state.todos.length, 2);
  const started = all.find(({ type }) => type === 'SUBAGENT_STARTED');
  assert.deepEqual([started.name, started.description], ['general-purpose', 'Check the docs']);
});

test('a tree of thoughts is an activity that grows', async () => {
  const { id } = await (await fetch(`${url}/api/sessions`, {
    method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify({ agent: 'tot', model: 'oracle:game24' }),
  })).json();
  const events = await post({ threadId: id, messages: [{ id: 't1', role: 'user', content: '4 9 10 13' }] });
  const snapshot = events.find(({ type }) => type === 'ACTIVITY_SNAPSHOT');
  assert.equal(snapshot.activityType, 'QWEN_THOUGHTS');
  assert.ok(snapshot.content.nodes.length > 1);
  const patches = events.filter(({ type }) => type === 'ACTIVITY_DELTA').flatMap(({ patch }) => patch);
  assert.ok(patches.some(({ value }) => value.state === 'chosen') && patches.some(({ path }) => path === '/edges/-'));
  assert.equal(outcome(events).type, 'success');
});

test('a failed turn is a run error', async () => {
  const events = [];
  const helper = agent('fail please');
  await helper.runAgent({}, { onEvent: ({ event }) => void events.push(event) }).catch(() => {});
  assert.equal(events.at(-1).type, 'RUN_ERROR');
  assert.match(events.at(-1).message, /broken model/);
});

test('an aborted run cancels its turn', { timeout: 30_000 }, async () => {
  const helper = agent('write slowly');
  const running = helper.runAgent({}, {
    onTextMessageContentEvent: () => helper.abortRun(),
  }).catch(() => {});
  await running;
  for (;;) {
    const { sessions } = await (await fetch(`${url}/api/sessions`, { headers })).json();
    if (sessions.find((session) => session.title === 'write slowly').status === 'idle') break;
  }
});

test('an input without ids is refused', async () => {
  const response = await fetch(`${url}/ag-ui`, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: '{}' });
  assert.equal(response.status, 400);
});
