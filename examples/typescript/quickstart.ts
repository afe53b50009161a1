// Six lines: a session, a prompt, the answer as it is written.
//   npx tsx quickstart.ts

import { createAgentManager } from '@qwen-agent/sdk';

const manager = createAgentManager({ model: process.env.QWEN_EXAMPLE_MODEL ?? 'demo' });
const session = await manager.createSession();
for await (const message of session.stream('Look around')) if (message.type === 'text') process.stdout.write(message.text);
await manager.close();
