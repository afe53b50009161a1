// Tools of this process: the agent calls them like any others.
//   npx tsx mcp_calculator.ts "What is 2 + 3?"

import { ToolError, createAgentManager, defineTools, tool } from '@qwen-agent/sdk';
import { z } from 'zod';

const numbers = { a: z.number(), b: z.number() };
const calculator = defineTools('calculator', [
  tool({ name: 'add', description: 'Adds two numbers', input: numbers, run: ({ a, b }) => a + b }),
  tool({
    name: 'divide',
    description: 'Divides a by b',
    input: numbers,
    run: ({ a, b }) => {
      if (b === 0) throw new ToolError('Division by zero');
      return a / b;
    },
  }),
]);

const manager = createAgentManager({
  model: process.env.QWEN_EXAMPLE_MODEL ?? 'demo',
  tools: [calculator],
  allowedTools: ['mcp__calculator__add', 'mcp__calculator__divide'],
});
const result = await manager.run(process.argv[2] ?? 'What is 2 + 3?');
for (const call of result.toolCalls) console.log(`${call.name}(${JSON.stringify(call.arguments)})`);
console.log(result.text);
await manager.close();
