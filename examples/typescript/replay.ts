// Plays a recorded session back: every message of its turns, without a model.
//   npx tsx replay.ts SESSION_ID

import { createAgentManager } from '@qwen-agent/sdk';

const sessionId = process.argv[2];
if (sessionId === undefined) throw new Error('usage: replay.ts SESSION_ID');
const manager = createAgentManager();
for await (const message of manager.replaySession(sessionId)) {
  if (message.type === 'text') process.stdout.write(message.text);
  if (message.type === 'tool_status') console.log(`[${message.toolName ?? message.toolCallId} ${message.status}]`);
  if (message.type === 'result') console.log(`\n-- ${message.result.status} --`);
}
