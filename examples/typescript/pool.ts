// A backend: any number of sessions on a bounded number of workers.
//   npx tsx pool.ts

import { createAgentManager } from '@qwen-agent/sdk';

const manager = createAgentManager({ model: process.env.QWEN_EXAMPLE_MODEL ?? 'demo', workerPool: { maxWorkers: 4 } });

async function answer(user: string): Promise<string> {
  await using session = await manager.createSession();
  const result = await session.run(`Greet ${user}`, { timeoutMs: 60_000 });
  return `${user}: ${result.status}`;
}

const users = Array.from({ length: 12 }, (_, index) => `user-${String(index + 1)}`);
for (const line of await Promise.all(users.map(answer))) console.log(line);
await manager.close();
