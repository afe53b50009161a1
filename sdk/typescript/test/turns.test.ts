import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { z as z3 } from 'zod3';
import { all, call, gate, only, place, say, sdk } from './harness.js';

test('a query yields messages and ends after its result', async (t) => {
  const at = await place(t, [say('Hello ', 'there')]);
  const messages = await all(sdk.query('hi', { binaryPath: process.env.QWEN_BIN, cwd: at.work, env: at.env }));
  const last = messages.at(-1);
  assert.equal(last?.type, 'result');
  const result = only(messages, 'result')[0]?.result;
  assert.ok(result);
  assert.deepEqual([result.status, result.ok, result.text, result.summary], ['done', true, 'Hello there', 'Hello there']);
  assert.ok(result.usage && result.usage.total_tokens > 0);
  assert.ok(result.usageByModel.mock);
  assert.equal(only(messages, 'result').length, 1);
});

for (const includePartialMessages of [true, false]) {
  test(`the final answer is a message before the result, ${includePartialMessages ? 'in pieces' : 'whole'}`, async (t) => {
    const at = await place(t, [say('Looking.', call('list_directory', { path: '.' })), say('Found it.')]);
    const session = await at.manager({ includePartialMessages }).createSession();
    const messages = await all(session.stream('look'));
    const whole = only(messages, 'assistant').map(({ text, toolCalls }) => [text, toolCalls.length]);
    assert.deepEqual(whole, [['Looking.', 1], ['Found it.', 0]]);
    assert.deepEqual(messages.slice(-2).map(({ type }) => type), ['assistant', 'result']);
    assert.equal(only(messages, 'terminal').length, 0, 'no empty output event ends the turn');
  });
}

test('text arrives in pieces that joined are the text of the result', async (t) => {
  const at = await place(t, [say('One ', gate('rest'), 'two ', 'three')]);
  const session = await at.manager().createSession();
  const turn = session.stream('count');
  const pieces: string[] = [];
  for await (const message of turn) {
    if (message.type !== 'text') continue;
    // The model says the rest only after the first piece has arrived here.
    if (pieces.push(message.text) === 1) await at.open('rest');
  }
  assert.ok(pieces.length > 1);
  assert.equal(pieces.join(''), 'One two three');
  assert.equal(await turn.text(), 'One two three');
});

test('whole messages come without pieces when partial messages are switched off', async (t) => {
  const at = await place(t, [say('a ', 'b', call('list_directory', { path: '.' })), say('c ', 'd')]);
  const session = await at.manager({ includePartialMessages: false }).createSession();
  const messages = await all(session.stream('go'));
  assert.deepEqual(only(messages, 'text').map(({ text }) => text), ['a b', 'c d']);
  assert.deepEqual(only(messages, 'assistant').map(({ toolCalls }) => toolCalls.map(({ name }) => name)), [['list_directory'], []]);
});

test('prompts of a session continue one conversation', async (t) => {
  const at = await place(t, [say('one'), say('two')]);
  const session = await at.manager().createSession();
  assert.equal((await session.run('a')).text, 'one');
  assert.equal((await session.run('b')).text, 'two');
  assert.deepEqual(await at.history(), ['a', 'one', 'b']);
});

test('tool calls are objects in the messages and in the result', async (t) => {
  const at = await place(t, [say(call('list_directory', { path: '.' }, 'call_1')), say('done')]);
  const session = await at.manager().createSession();
  const messages = await all(session.stream('look'));
  const expected = { id: 'call_1', name: 'list_directory', arguments: { path: '.' } };
  const [assistant] = only(messages, 'assistant');
  assert.deepEqual(assistant?.toolCalls, [{ ...expected, argumentsText: '{"path":"."}' }]);
  const [end] = only(messages, 'result');
  assert.deepEqual(end?.result.toolCalls.map(({ id, name, arguments: args }) => ({ id, name, arguments: args })), [expected]);
  assert.ok(only(messages, 'tool_status').some(({ status }) => status === 'success'));
});

test('prompts of an async iterable each get their result', async (t) => {
  const at = await place(t, [say('first'), say('second')]);
  const session = await at.manager().createSession();
  async function* prompts(): AsyncGenerator<string> {
    yield 'a';
    yield 'b';
  }
  const ends = only(await all(session.stream(prompts())), 'result');
  assert.deepEqual(ends.map(({ result }) => result.text), ['first', 'second']);
});

test('an async iterable that throws ends the stream with its error', async (t) => {
  const at = await place(t, [say('first')]);
  const session = await at.manager().createSession();
  async function* prompts(): AsyncGenerator<string> {
    throw new Error('no input today');
  }
  await assert.rejects(all(session.stream(prompts())), /no input today/);
  assert.equal((await session.run('still here?')).text, 'first');
});

test('a slash command has a result and calls no model', async (t) => {
  const at = await place(t, []);
  const session = await at.manager().createSession();
  const messages = await all(session.stream('/stats'));
  assert.equal(only(messages, 'command')[0]?.command.path[0], 'stats');
  assert.equal(only(messages, 'result')[0]?.result.status, 'done');
  assert.equal((await session.run('/nonsense-command')).isError, true);
  assert.deepEqual(await at.requests(), []);
});

test('interrupt ends the turn as cancelled and the session goes on', async (t) => {
  const at = await place(t, [say('begun ', gate('never')), say('again')]);
  const session = await at.manager().createSession();
  const turn = session.stream('long');
  for await (const message of turn) if (message.type === 'text') await session.interrupt();
  const result = await turn.result();
  assert.deepEqual([result.status, result.text, result.isError], ['cancelled', 'begun ', true]);
  assert.ok(result.usage);
  assert.equal((await session.run('next')).text, 'again');
});

test('a consumer that leaves the loop ends the turn and keeps the session', async (t) => {
  const at = await place(t, [say('begun ', gate('never')), say('again')]);
  const session = await at.manager().createSession();
  for await (const message of session.stream('long')) if (message.type === 'text') break;
  assert.equal(session.lastResult?.status, 'cancelled');
  assert.equal((await session.run('next')).text, 'again');
});

test('interrupt without a running turn does nothing', async (t) => {
  const at = await place(t, [say('fine')]);
  const session = await at.manager().createSession();
  await session.interrupt();
  assert.equal((await session.run('go')).text, 'fine');
});

test('an aborted signal ends the turn with an AbortError that carries the result', async (t) => {
  const at = await place(t, [say('begun ', gate('never')), say('again')]);
  const session = await at.manager().createSession();
  const controller = new AbortController();
  const turn = session.stream('long', { signal: controller.signal });
  const consumed = (async () => {
    for await (const message of turn) if (message.type === 'text') controller.abort(new Error('enough'));
  })();
  await assert.rejects(consumed, (error: Error & { result?: { status: string } }) => {
    assert.equal(error.name, 'AbortError');
    assert.equal((error.cause as Error).message, 'enough');
    assert.equal(error.result?.status, 'cancelled');
    return true;
  });
  assert.equal((await session.run('next')).text, 'again');
  await assert.rejects(session.run('x', { signal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('a turn that takes longer than its time-out ends with an error that names it', async (t) => {
  const at = await place(t, [say('begun ', gate('never'))]);
  const session = await at.manager().createSession();
  await assert.rejects(session.run('long', { timeoutMs: 50 }), { name: 'TimeoutError', timeout: 'turn' });
});

test('model and permission mode change within a session', async (t) => {
  const at = await place(t, [say('a'), say(call('write_file', { file_path: 'x.txt', content: 'x' })), say('b'), say('c')]);
  const session = await at.manager().createSession();
  await session.setModel('other-model');
  await session.run('one');
  assert.equal((await at.requests()).at(-1)?.model, 'other-model');
  await session.setPermissionMode('auto-edit');
  const result = await session.run('two');
  assert.deepEqual([result.ok, result.toolCallCount], [true, 1]);
  await session.run('three', { model: 'third' });
  assert.equal((await at.requests()).at(-1)?.model, 'third');
  await assert.rejects(session.setPermissionMode('nonsense' as 'plan'), { name: 'RequestError' });
});

test('a limit ends the turn with its cause and what there is', async (t) => {
  const at = await place(t, [say('looking ', call('list_directory', { path: '.' }))], { loop: true });
  const session = await at.manager({ limits: { maxTurns: 2 } }).createSession();
  const result = await session.run('go');
  assert.deepEqual([result.status, result.isError, result.text], ['max_turns', true, 'looking ']);
  assert.ok(result.usage && result.usage.total_tokens > 0);
});

test('usage is on every result, of failed turns too, by model', async (t) => {
  const at = await place(t, [say(call('list_directory', { path: '.' })), { steps: [{ status: 400, body: '{"error":{"message":"bad"}}' }] }]);
  const session = await at.manager().createSession();
  const result = await session.run('go');
  assert.equal(result.status, 'error');
  assert.ok(result.error?.message.includes('bad'), JSON.stringify(result.error));
  assert.ok(result.usage && result.usage.total_tokens > 0);
  assert.deepEqual(Object.keys(result.usageByModel), ['mock']);
});

const PERSON = z.object({ name: z.string(), age: z.number() });

for (const [library, schema] of [
  ['zod 4', PERSON],
  ['zod 3', z3.object({ name: z3.string(), age: z3.number() })],
  ['JSON Schema', { type: 'object', properties: { name: { type: 'string' }, age: { type: 'number' } }, required: ['name', 'age'] }],
] as const) {
  test(`structured output is a validated object with ${library}`, async (t) => {
    const at = await place(t, [say(call('structured_output', { name: 'Ada' })), say(call('structured_output', { name: 'Ada', age: 36 }))]);
    const session = await at.manager().createSession();
    const result = await session.run('who?', { outputSchema: schema });
    assert.deepEqual(result.structuredOutput, { name: 'Ada', age: 36 });
  });
}

test('structured output has the type of its schema', async (t) => {
  const at = await place(t, [say(call('structured_output', { name: 'Ada', age: 36 }))]);
  const session = await at.manager().createSession();
  const { structuredOutput } = await session.run('who?', { outputSchema: PERSON });
  const age: number | undefined = structuredOutput?.age;
  assert.equal(age, 36);
});

test('structured output that does not come is an error and never a success', async (t) => {
  const at = await place(t, [say('I would rather not.')], { loop: true });
  const session = await at.manager().createSession();
  await assert.rejects(session.run('who?', { outputSchema: PERSON }), (error: Error & { result?: { status: string } }) => {
    assert.equal(error.name, 'StructuredOutputError');
    assert.equal(error.result?.status, 'error');
    return true;
  });
});

test('structured output that only the host can judge is an error when it does not fit', async (t) => {
  const at = await place(t, [say(call('structured_output', { name: 'Ada' }))]);
  const session = await at.manager().createSession();
  const schema = z.object({ name: z.string().refine((name) => name !== 'Ada', 'not her') });
  await assert.rejects(session.run('who?', { outputSchema: schema }), /not her/);
});

test('agents of the host are offered and their work counts for the turn', async (t) => {
  const at = await place(t, [
    say(call('agent', { description: 'look', prompt: 'Look around', subagent_type: 'scout' })),
    say('Nothing here.'),
    say('The scout found nothing.'),
  ]);
  const scout = { description: 'Looks around', prompt: 'You are a scout.', tools: ['list_directory'] };
  const session = await at.manager({ agents: { scout } }).createSession();
  const result = await session.run('go');
  assert.equal(result.text, 'The scout found nothing.');
  assert.equal(result.modelCallCount, 3);
  const requests = await at.requests();
  assert.ok(requests[1]?.messages.some((message) => JSON.stringify(message).includes('You are a scout.')));
  assert.equal(result.usageByModel.mock?.calls, 3);
  const spent = result.usageByAgent.scout;
  assert.deepEqual([spent?.runs, spent?.model_calls, spent?.tool_calls], [1, 1, 0]);
});

test('steer joins the running turn before its next model call', async (t) => {
  const at = await place(t, [say('working ', gate('hold'), call('list_directory', { path: '.' })), say('in French, then')]);
  const session = await at.manager().createSession();
  const turn = session.stream('write a poem');
  let steering: Promise<unknown> | undefined;
  for await (const message of turn) {
    if (message.type !== 'text' || steering !== undefined) continue;
    steering = session.steer('in French, please');
    await session.request('get_context_usage');
    await at.open('hold');
  }
  assert.deepEqual(await steering, { joined: true });
  assert.ok((await at.history()).some((text) => text.includes('in French, please')));
  assert.equal((await turn.result()).text, 'in French, then');
});

test('steer without a running turn is an ordinary prompt', async (t) => {
  const at = await place(t, [say('hello')]);
  const session = await at.manager().createSession();
  const outcome = await session.steer('hi');
  assert.ok(!outcome.joined);
  assert.equal((await outcome.turn.result()).text, 'hello');
});

test('an image part reaches the model', async (t) => {
  const at = await place(t, [say('a pixel')]);
  const session = await at.manager().createSession();
  const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+P//PwAF/gL+pzWBDgAAAABJRU5ErkJggg==';
  await session.run([{ type: 'text', text: 'what is this?' }, { type: 'image', data, mimeType: 'image/png' }]);
  assert.ok(JSON.stringify((await at.requests())[0]?.messages).includes(data));
});

test('a prompt that the worker refuses is an error result and not a hang', async (t) => {
  const at = await place(t, [say('begun ', gate('held')), say('two')]);
  const session = await at.manager().createSession();
  const running = session.stream('a');
  await at.reached('held');
  // Refused while another turn runs: the refusal names its own prompt.
  const refused = await session.run('');
  assert.deepEqual([refused.status, refused.error?.code], ['error', 'empty_prompt']);
  await at.open('held');
  assert.equal((await running.result()).status, 'done');
  assert.equal((await session.run('b')).text, 'two');
});

test('messages can be asked for before they are there, and by two consumers', async (t) => {
  const at = await place(t, [say('one ', 'two ', 'three'), say('four ', 'five'), say('six')]);
  const session = await at.manager().createSession();
  const iterator = session.stream('a')[Symbol.asyncIterator]();
  const steps = await Promise.all(Array.from({ length: 20 }, () => iterator.next()));
  const messages = steps.flatMap((step) => (step.done === true ? [] : [step.value]));
  assert.equal(messages.at(-1)?.type, 'result');
  assert.equal(only(messages, 'text').map(({ text }) => text).join(''), 'one two three');
  const turn = session.stream('b');
  const shares = await Promise.all([all(turn), all(turn)]);
  assert.equal(only(shares.flat(), 'result').length, 1);
  const query = sdk.query('c', { binaryPath: process.env.QWEN_BIN, cwd: at.work, env: at.env })[Symbol.asyncIterator]();
  const [first] = await Promise.all([query.next(), query.next()]);
  assert.equal(first.done, false);
  await query.return?.();
});

test('the iterator of a turn can be iterated over', async (t) => {
  const at = await place(t, [say('one')]);
  const session = await at.manager().createSession();
  const iterator = session.stream('a')[Symbol.asyncIterator]();
  const messages: string[] = [];
  for await (const message of iterator) messages.push(message.type);
  assert.equal(messages.at(-1), 'result');
});
