// Hooks: protect a directory, and tell the model the rules of the house with every prompt.
//   npx tsx hooks.ts "Write secrets/key.txt"

import { createAgentManager } from '@qwen-agent/sdk';

const manager = createAgentManager({
  model: process.env.QWEN_EXAMPLE_MODEL ?? 'demo',
  permissionMode: 'auto-edit',
  hooks: {
    UserPromptSubmit: [{ handler: () => ({ additionalContext: 'Write British English.' }) }],
    PreToolUse: [
      {
        matcher: 'Edit|Write',
        onFailure: 'block',
        handler: ({ toolInput }) =>
          String(toolInput?.file_path).includes('secrets/')
            ? { permissionDecision: 'deny', permissionDecisionReason: 'secrets/ is off limits' }
            : undefined,
      },
    ],
    PostToolUse: [{ handler: ({ toolName }) => { console.log(`ran ${toolName ?? ''}`); } }],
  },
});
const result = await manager.run(process.argv[2] ?? 'Write secrets/key.txt');
console.log(result.text);
await manager.close();
