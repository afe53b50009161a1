import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { binary, findProgram, format, gate, packageRoot, place, say } from './harness.js';

for (const { name, program, args } of [
  { name: 'Bun', program: findProgram(process.env.BUN_BIN, 'bun'), args: ['run'] },
  { name: 'Deno', program: findProgram(process.env.DENO_BIN, 'deno'), args: ['run', '-A'] },
]) {
  const skip = format === 'cjs' || (program === undefined && `${name} is not installed`);
  test(`sessions, interrupts and closing work in ${name}`, { skip }, async (t) => {
    const at = await place(t, [say('one'), say('begun ', gate('never')), say('three')]);
    const file = join(at.work, 'host.mjs');
    writeFileSync(file, `import { createAgentManager } from ${JSON.stringify(join(packageRoot, 'dist', 'esm', 'index.js'))};
      const manager = createAgentManager({ binaryPath: ${JSON.stringify(binary)} });
      const session = await manager.createSession();
      console.log((await session.run('a')).text);
      for await (const message of session.stream('b')) {
        if (message.type === 'text') await session.interrupt();
        if (message.type === 'result') console.log(message.result.status);
      }
      console.log((await session.run('c')).text);
      await manager.close();`);
    const env = Object.fromEntries(Object.entries({ ...process.env, ...at.env }).filter((entry): entry is [string, string] => entry[1] !== undefined));
    const { stdout } = await promisify(execFile)(program ?? '', [...args, file], { cwd: at.work, env });
    assert.equal(stdout, 'one\ncancelled\nthree\n');
  });
}
