// A tree of thoughts while it grows.
//   npx tsx thought_tree.ts "4 9 10 13"

import { createAgentManager } from '@qwen-agent/sdk';

const manager = createAgentManager({ model: process.env.QWEN_EXAMPLE_MODEL ?? 'oracle:game24', agent: 'tot' });
const session = await manager.createSession();
for await (const message of session.stream(process.argv[2] ?? '4 9 10 13')) {
  if (message.type === 'thought') console.log(`thought: ${message.description}`);
  if (message.type === 'session_event' && message.value !== undefined) console.log(`${message.event}: ${JSON.stringify(message.value)}`);
  if (message.type === 'result') console.log(`answer: ${message.result.text}`);
}
await manager.close();
