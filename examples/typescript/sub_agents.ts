// An agent that delegates: sub-agents are defined by the host, and their messages name the call that started them.
//   npx tsx sub_agents.ts

import { createAgentManager } from '@qwen-agent/sdk';

const manager = createAgentManager({
  model: process.env.QWEN_EXAMPLE_MODEL ?? 'demo',
  agents: {
    reviewer: { description: 'Reviews code for mistakes', prompt: 'You review code. Be brief.', tools: ['read_file', 'grep_search'] },
  },
});
const session = await manager.createSession();
for await (const message of session.stream('Have the reviewer look at this project')) {
  if (message.type === 'tool_status') console.log(`${message.parentToolCallId === undefined ? '' : '  '}${message.toolName ?? ''} ${message.status}`);
  if (message.type === 'result') console.log(message.result.text, `(${String(message.result.modelCallCount)} model calls)`);
}
await manager.close();
