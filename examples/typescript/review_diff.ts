// For CI: reviews a diff and fails when there is something to change.
//   git diff main... | npx tsx review_diff.ts

import { text } from 'node:stream/consumers';
import { createAgentManager } from '@qwen-agent/sdk';
import { z } from 'zod';

const Review = z.object({ findings: z.array(z.object({ file: z.string(), comment: z.string() })) });

const diff = await text(process.stdin);
// `plan` reads only, so nothing needs permission in CI.
const manager = createAgentManager({ model: process.env.QWEN_EXAMPLE_MODEL ?? 'demo', permissionMode: 'plan', limits: { maxWallTimeSeconds: 300 } });
try {
  const { structuredOutput } = await manager.run(`Review this diff for mistakes:\n\n${diff}`, { outputSchema: Review });
  const findings = structuredOutput?.findings ?? [];
  for (const { file, comment } of findings) console.log(`::warning file=${file}::${comment}`);
  process.exitCode = findings.length > 0 ? 1 : 0;
} finally {
  await manager.close();
}
