#!/usr/bin/env node
// Starts the qwen program that the package of this platform carries, so that `npx @qwen-agent/sdk --acp` runs it. QWEN_BIN names
// another program.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants } from 'node:os';

const name = `@qwen-agent/sdk-${process.platform}-${process.arch}`;

function program() {
  if (process.env.QWEN_BIN) return process.env.QWEN_BIN;
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/qwen`);
  } catch {
    process.stderr.write(`qwen: the package ${name} is not installed; install it, or set QWEN_BIN to a qwen program\n`);
    process.exit(1);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  process.stderr.write(`qwen: the program cannot be started: ${error.message}\n`);
  process.exit(1);
});
child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
