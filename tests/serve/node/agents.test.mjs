// The server through `@openai/agents`: functions and approvals of an agent that is itself driven by an SDK.
import assert from 'node:assert/strict';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { Agent, OpenAIProvider, Runner, hostedMcpTool, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';

const url = process.env.QWEN_SERVE_URL;
const made = join(process.env.QWEN_SERVE_WORKSPACE, 'made.txt');
const openAIClient = new OpenAI({ baseURL: `${url}/v1`, apiKey: process.env.QWEN_SERVE_TOKEN });
const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient, useResponses: true }), tracingDisabled: true });

test('an agent of the SDK answers', async () => {
  const agent = new Agent({ name: 'outer', model: 'qwen' });
  const result = await runner.run(agent, 'Please say hello');
  assert.equal(result.finalOutput, 'Hello from qwen.');
});

for (const stream of [false, true]) {
  test(`a function that needs approval runs once it is approved, stream: ${stream}`, async () => {
    const asked = [];
    const weather = tool({
      name: 'get_weather',
      description: 'Returns the weather',
      parameters: z.object({ city: z.string() }),
      needsApproval: true,
      execute: async ({ city }) => {
        asked.push(city);
        return 'sunny';
      },
    });
    const agent = new Agent({ name: 'outer', model: 'qwen', tools: [weather] });
    let result = await runner.run(agent, 'what is the weather', { stream });
    if (stream) await result.completed;
    assert.equal(result.interruptions.length, 1);
    assert.deepEqual(asked, []);
    result.state.approve(result.interruptions[0]);
    result = await runner.run(agent, result.state, { stream });
    if (stream) await result.completed;
    assert.deepEqual(asked, ['Paris']);
    assert.equal(result.finalOutput, 'It is sunny.');
  });
}

for (const approved of [true, false]) {
  test(`a command of the server's agent is ${approved ? 'approved' : 'rejected'} through the SDK`, async () => {
    rmSync(made, { force: true });
    const server = hostedMcpTool({ serverLabel: 'qwen', serverUrl: `${url}/mcp`, requireApproval: 'always' });
    const agent = new Agent({ name: 'outer', model: 'qwen', tools: [server] });
    let result = await runner.run(agent, 'make a file');
    assert.equal(result.interruptions.length, 1);
    assert.equal(existsSync(made), false);
    const [question] = result.interruptions;
    if (approved) result.state.approve(question);
    else result.state.reject(question);
    result = await runner.run(agent, result.state);
    assert.equal(result.finalOutput, 'File handled.');
    assert.equal(existsSync(made), approved);
  });
}
