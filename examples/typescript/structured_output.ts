// The result as data: validated against a schema and typed.
//   npx tsx structured_output.ts

import { StructuredOutputError, createAgentManager } from '@qwen-agent/sdk';
import { z } from 'zod';

const Review = z.object({
  verdict: z.enum(['approve', 'request_changes']),
  findings: z.array(z.object({ file: z.string(), line: z.number(), comment: z.string() })),
});

const manager = createAgentManager({ model: process.env.QWEN_EXAMPLE_MODEL ?? 'demo' });
try {
  const { structuredOutput } = await manager.run('Review the working tree', { outputSchema: Review });
  console.log(structuredOutput?.verdict);
  for (const { file, line, comment } of structuredOutput?.findings ?? []) console.log(`${file}:${String(line)} ${comment}`);
} catch (error) {
  if (!(error instanceof StructuredOutputError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await manager.close();
}
