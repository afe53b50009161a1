// A chat on the terminal. A line that comes while the agent works steers it; an empty line interrupts it.
//   npx tsx chat_bot.ts

import { createInterface } from 'node:readline';
import { createAgentManager } from '@qwen-agent/sdk';
import type { Turn } from '@qwen-agent/sdk';

const manager = createAgentManager({ model: process.env.QWEN_EXAMPLE_MODEL ?? 'demo' });
const session = await manager.createSession({ appendSystemPrompt: 'You chat. Answer in one sentence.' });
let running: Turn | undefined;

async function show(turn: Turn): Promise<void> {
  running = turn;
  for await (const message of turn) if (message.type === 'text') process.stdout.write(message.text);
  process.stdout.write('\n> ');
  running = undefined;
}

process.stdout.write('> ');
let last: Promise<void> = Promise.resolve();
for await (const line of createInterface({ input: process.stdin })) {
  if (running === undefined) {
    last = show(session.stream(line));
  } else if (line === '') {
    await running.interrupt();
  } else {
    const outcome = await session.steer(line);
    if (!outcome.joined) last = show(outcome.turn);
  }
}
await last;
await manager.close();
