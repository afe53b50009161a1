import { spawn } from 'node:child_process';
import { WorkerExitedError } from './errors.js';
import type { ResolvedOptions } from './options.js';
import { findBinary } from './transport/binary.js';
import type { AgentMessage } from './wire/messages.js';
import { isUnknown, parseLine } from './wire/parse.js';
import { TurnReader } from './wire/reader.js';
import { workerEnvironment } from './worker/launch.js';

export interface ReplayOptions {
  /** Plays at the recorded pace times this factor. Without it everything comes at once. */
  readonly speed?: number;
}

/** Yields the messages of a recorded session, turn after turn. */
export async function* replay(options: ResolvedOptions, sessionId: string, { speed }: ReplayOptions): AsyncGenerator<AgentMessage, void, undefined> {
  const env = workerEnvironment(options);
  const pace = speed === undefined ? ['export'] : ['replay', '--speed', String(speed)];
  const [command = 'export', ...flags] = pace;
  const args = ['sessions', command, sessionId, '--dialect', 'qwen', ...flags];
  const child = spawn(findBinary(options.binaryPath, env), args, { env, cwd: options.cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let stderrTail = '';
  child.stderr.on('data', (chunk: Buffer) => { stderrTail = (stderrTail + chunk.toString('utf8')).slice(-4096); });
  const exit = new Promise<{ exitCode: number | null; signal: string | null }>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode, signal) => { resolve({ exitCode, signal }); });
  });
  exit.catch(() => undefined);
  const readers = new Map<string, TurnReader>();
  try {
    const { createInterface } = await import('node:readline');
    for await (const line of createInterface({ input: child.stdout })) yield* messagesOf(line, readers);
    const ended = await exit;
    if (ended.exitCode !== 0) throw new WorkerExitedError(`The session '${sessionId}' cannot be replayed`, { ...ended, stderrTail });
  } finally {
    child.kill('SIGTERM');
  }
}

function messagesOf(line: string, readers: Map<string, TurnReader>): AgentMessage[] {
  const event = parseLine(line);
  if (isUnknown(event)) return [event];
  const key = (event as { prompt_id?: string | null }).prompt_id ?? '';
  const reader = readers.get(key) ?? new TurnReader();
  readers.set(key, reader);
  const messages: AgentMessage[] = [];
  reader.read(event, (message) => messages.push(message));
  return messages;
}
