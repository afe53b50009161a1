import { accessSync, constants, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { BinaryNotFoundError } from '../errors.js';

const PROGRAM = process.platform === 'win32' ? 'qwen.exe' : 'qwen';

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function onPath(name: string, path: string | undefined): string | undefined {
  for (const directory of (path ?? '').split(delimiter)) {
    if (directory === '') continue;
    const candidate = join(directory, name);
    if (isExecutable(candidate)) return candidate;
  }
  return undefined;
}

/** A path, or the name of a program on PATH. */
function named(value: string, path: string | undefined): string | undefined {
  if (!isAbsolute(value) && !/[\\/]/.test(value)) return onPath(value, path);
  const absolute = resolve(value);
  return isExecutable(absolute) ? absolute : undefined;
}

function bundled(packageName: string): string | undefined {
  try {
    const path = createRequire(import.meta.url).resolve(`${packageName}/bin/${PROGRAM}`);
    return isExecutable(path) ? path : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Finds the `qwen` program: the option, then `QWEN_BIN`, then the package of this platform, then PATH. An option or
 * variable that names nothing executable is an error and not passed over.
 */
export function findBinary(option: string | undefined, env: Readonly<Record<string, string | undefined>>): string {
  if (option !== undefined) {
    const found = named(option, env.PATH);
    if (found === undefined) throw new BinaryNotFoundError([`option binaryPath=${option}`]);
    return found;
  }
  const variable = env.QWEN_BIN;
  if (variable) {
    const found = named(variable, env.PATH);
    if (found === undefined) throw new BinaryNotFoundError([`QWEN_BIN=${variable}`]);
    return found;
  }
  const packageName = `@qwen-agent/sdk-${process.platform}-${process.arch}`;
  const found = bundled(packageName) ?? onPath(PROGRAM, env.PATH);
  if (found === undefined) {
    throw new BinaryNotFoundError(['option binaryPath', 'QWEN_BIN', `package ${packageName}`, `PATH=${env.PATH ?? ''}`]);
  }
  return found;
}
