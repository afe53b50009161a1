// The official AG-UI client against `POST /ag-ui`.
import assert from 'node:assert/strict';
import { existsSync, rmSync } from 'node:fs';
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
