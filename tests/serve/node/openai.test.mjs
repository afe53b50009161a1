// The official `openai` package for Node against both endpoints.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: `${process.env.QWEN_SERVE_URL}/v1`, apiKey: process.env.QWEN_SERVE_TOKEN, maxRetries: 0 });
const ask = (content) => [{ role: 'user', content }];

test('models are the agents', async () => {
  const { data } = await client.models.list();
  assert.deepEqual(data.map((model) => model.id), ['qwen', 'qwen-tot', 'qwen-got']);
});

test('chat completions: an answer', async () => {
  const answer = await client.chat.completions.create({ model: 'qwen', messages: ask('say hello') });
  assert.equal(answer.choices[0].message.content, 'Hello from qwen.');
  assert.equal(answer.usage.total_tokens, 16);
});

test('chat completions: the stream helper', async () => {
  const stream = client.chat.completions.stream({ model: 'qwen', messages: ask('say hello') });
  assert.equal(await stream.finalContent(), 'Hello from qwen.');
});

test('chat completions: runTools calls a function and sends its result', async () => {
  const runner = client.chat.completions.runTools({
    model: 'qwen',
    messages: ask('what is the weather'),
    tools: [{
      type: 'function',
      function: { name: 'get_weather', parse: JSON.parse, function: ({ city }) => `sunny in ${city}`, description: 'the weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
    }],
  });
  assert.equal(await runner.finalContent(), 'It is sunny.');
});

test('responses: a text, chained', async () => {
  const first = await client.responses.create({ model: 'qwen', input: 'say hello' });
  assert.equal(first.output_text, 'Hello from qwen.');
  const second = await client.responses.create({ model: 'qwen', input: 'and again', previous_response_id: first.id });
  assert.equal(second.output_text, 'Hello again.');
});

test('responses: a stream with thoughts', async () => {
  const stream = client.responses.stream({ model: 'qwen', input: 'think first' });
  const kinds = [];
  stream.on('event', (event) => kinds.push(event.type));
  const final = await stream.finalResponse();
  assert.equal(final.output_text, 'Thought about it.');
  assert.ok(kinds.includes('response.output_text.delta'));
});

test('responses: a running response can be cancelled', async () => {
  const stream = await client.responses.create({ model: 'qwen', input: 'write slowly', stream: true });
  let id;
  for await (const event of stream) {
    id ??= event.response?.id;
    if (event.type === 'response.output_text.delta') await client.responses.cancel(id);
    if (event.type === 'response.incomplete') assert.equal(event.response.status, 'cancelled');
  }
  assert.equal((await client.responses.retrieve(id)).status, 'cancelled');
});

test('responses: an approval', async () => {
  const first = await client.responses.create({ model: 'qwen', input: 'make a file' });
  const request = first.output.find((item) => item.type === 'mcp_approval_request');
  const second = await client.responses.create({
    model: 'qwen', previous_response_id: first.id,
    input: [{ type: 'mcp_approval_response', approval_request_id: request.id, approve: false }],
  });
  assert.equal(second.output.find((item) => item.type === 'mcp_call').status, 'failed');
});

test('a wrong key is an authentication error', async () => {
  const other = new OpenAI({ baseURL: `${process.env.QWEN_SERVE_URL}/v1`, apiKey: 'wrong', maxRetries: 0 });
  await assert.rejects(other.models.list(), OpenAI.AuthenticationError);
});
