// A conversation that goes on later, and one that branches off.
//   npx tsx resume_and_fork.ts

import { createAgentManager } from '@qwen-agent/sdk';

const manager = createAgentManager({ model: process.env.QWEN_EXAMPLE_MODEL ?? 'demo' });
const first = await manager.createSession();
const { promptId } = await first.run('Remember the number 7');
await first.run('Remember the number 8 too');
await first.close();

const resumed = await manager.resumeSession(first.id);
console.log(`resumed: ${(await resumed.run('Which numbers?')).text}`);

// The fork knows the first prompt only.
const fork = await manager.forkSession(first.id, { at: promptId });
console.log(`fork: ${(await fork.run('Which numbers?')).text}`);
await manager.close();
