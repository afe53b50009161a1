// Asks on the terminal before the agent changes something. Answer y, n, or a (always, for this session).
//   npx tsx permission_dialog.ts "edit notes.txt replacing one with two"

import { createInterface } from 'node:readline/promises';
import { createAgentManager } from '@qwen-agent/sdk';
import type { PermissionDecision, PermissionRequest } from '@qwen-agent/sdk';

const terminal = createInterface({ input: process.stdin, output: process.stdout });

async function ask(request: PermissionRequest, { signal }: { signal: AbortSignal }): Promise<PermissionDecision> {
  const { confirmation } = request;
  if (confirmation?.type === 'edit') console.log(confirmation.diff);
  else if (confirmation?.type === 'exec') console.log(`$ ${confirmation.command}`);
  const answer = await terminal.question(`Allow ${request.toolName}? [y/n/a] `, { signal });
  if (answer === 'a') return { behavior: 'allow', rules: [request.toolName] };
  return answer === 'y' ? 'allow' : { behavior: 'deny', message: 'The user said no.' };
}

const manager = createAgentManager({ model: process.env.QWEN_EXAMPLE_MODEL ?? 'demo', onPermissionRequest: ask });
const result = await manager.run(process.argv[2] ?? 'edit notes.txt replacing one with two');
console.log(result.text);
for (const denial of result.permissionDenials) console.log(`denied: ${denial.tool_name}`);
terminal.close();
await manager.close();
