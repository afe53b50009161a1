import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import type { AgentMessage, TurnResult, WireEvent } from '@qwen-agent/sdk';
import { all, fakeWorker, only, repositoryRoot, sdk } from './harness.js';

interface Trace {
  name: string;
  turns: Array<{ prompt_id: string; status: string; reply: string }>;
  files: Array<{ path: string; dialect: string; format: string; lines: number }>;
}

const corpus = join(repositoryRoot, 'corpus');
const { traces } = JSON.parse(readFileSync(join(corpus, 'manifest.json'), 'utf8')) as { traces: Trace[] };

function linesOf(path: string): string[] {
  const bytes = readFileSync(join(corpus, path));
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8').split('\n').slice(0, -1);
}

for (const trace of traces) {
  for (const file of trace.files.filter(({ dialect, format }) => dialect === 'qwen' && format.startsWith('stream-'))) {
    test(`the corpus reads as its manifest says: ${file.path}`, () => {
      const lines = linesOf(file.path);
      assert.equal(lines.length, file.lines);
      const results: TurnResult[] = [];
      const readers = new Map<string, InstanceType<typeof sdk.TurnReader>>();
      for (const line of lines) {
        const event = sdk.parseLine(line);
        assert.ok(!('type' in event) || event.type !== 'unknown', line.slice(0, 300));
        const { prompt_id: promptId } = event as { prompt_id?: string | null };
        const key = promptId ?? '';
        const reader = readers.get(key) ?? new sdk.TurnReader();
        readers.set(key, reader);
        const result = reader.read(event as WireEvent, () => undefined);
        if (result !== undefined) results.push(result);
      }
      assert.deepEqual(
        results.map(({ promptId, status, text }) => ({ promptId, status, text })),
        trace.turns.map((turn) => ({ promptId: turn.prompt_id, status: turn.status, text: turn.reply })),
      );
    });
  }
}

test('the examples of the specification are known lines', () => {
  const names = ['chunk-final', 'chunk-role', 'control-request', 'control-response', 'fatal-error', 'result-cancel', 'result-command-hint',
    'result-command', 'result-heartbeat', 'session-event', 'terminal', 'thought', 'tool-display'];
  for (const name of names) {
    const event = sdk.parseLine(readFileSync(join(corpus, 'spec-examples', `spec1-${name}.json`), 'utf8'));
    assert.notEqual((event as { type?: string }).type, 'unknown', name);
  }
  for (const line of linesOf('spec-examples/spec1-stream-json.jsonl')) assert.notEqual((sdk.parseLine(line) as { type?: string }).type, 'unknown');
});

test('parsing never throws, whatever the line is', () => {
  const lines = ['', '{', 'null', '[]', '3', '"x"', '{}', '{"type":7}', '{"type":"x-new","a":1}', '{"choices":{}}', '{"choices":[null]}',
    '{"object":"chat.completion"}', '{"object":"chat.completion","choices":[{}]}', '{"object":"chat.completion.chunk","choices":[{"delta":{"tool_calls":[{}]}}]}',
    '{"type":"control_response"}', '{"type":"control_request"}', '{"error":"text"}', '\u0000', '['.repeat(20_000)];
  for (const line of lines) {
    const event = sdk.parseLine(line);
    assert.equal((event as { type?: string }).type, 'unknown', line.slice(0, 80));
  }
});

test('an unknown type is an UnknownEvent with its data', () => {
  assert.deepEqual(sdk.parseLine('{"type":"x-qwen-hologram","depth":3}'), {
    type: 'unknown', reason: 'unknown_type', data: { type: 'x-qwen-hologram', depth: 3 },
  });
});

test('unknown fields of known lines are kept', () => {
  const line = '{"type":"x-qwen-thought","subject":"s","description":"d","mood":{"calm":true}}';
  const messages: AgentMessage[] = [];
  new sdk.TurnReader().read(sdk.parseLine(line) as WireEvent, (message) => messages.push(message));
  const [thought] = messages;
  assert.deepEqual((thought as { raw: unknown }).raw, JSON.parse(line));
});

test('pieces of text are read alike whether or not their line is parsed whole', async (t) => {
  const pieces = ['plain', 'with "quotes" and \\ and \n and \u0000', '完了 🎉', '"delta":{"content":"', '"},"finish_reason":null}]}', '\\"', ' ', 'end'];
  const path = fakeWorker(t, `handshake(); serve((prompt) => {
    text(prompt, 'first ');
    for (const piece of ${JSON.stringify(pieces)}) text(prompt, piece);
    write({ object: 'chat.completion.chunk', id: 'c', created: 1, model: 'fake', session_id: id, prompt_id: prompt, choices: [{ index: 0, delta: { content: 'a', extra: 'b' }, finish_reason: null }] });
    text(prompt, '');
    text('somebody-else', 'not mine');
    text(prompt, 'last');
    terminal(prompt);
  });`);
  const session = await sdk.createAgentManager({ binaryPath: path, heartbeat: false }).createSession();
  const messages = await all(session.stream('x'));
  const texts = only(messages, 'text');
  assert.deepEqual(texts.map(({ text }) => text), ['first ', ...pieces, 'a', 'last']);
  for (const { text, raw } of texts) {
    const [choice] = (raw as { choices: Array<{ delta: { content: string } }> }).choices;
    assert.equal(choice?.delta.content, text);
  }
  assert.equal(only(messages, 'result')[0]?.result.text, texts.map(({ text }) => text).join(''));
  await session.close();
});
