// A headless Chromium over its debugging pipe: enough to open a page, click and read.

import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { TestContext } from 'node:test';
import { exitOf, findProgram, temporaryDirectory } from './harness.js';

/** The browser of this machine, if it has one. */
export function findChromium(): string | undefined {
  return findProgram(process.env.CHROMIUM_BIN, 'chromium', 'chromium-browser', 'google-chrome');
}

export interface Page {
  /** Runs an expression in the page and returns its value; promises are awaited. */
  evaluate(expression: string): Promise<unknown>;
}

type Answer = { id?: number; result?: { value?: unknown; [key: string]: unknown }; error?: { message: string } };

/** Opens an address in a new browser, which is closed with the test. */
export async function openPage(t: TestContext, browser: string, address: string): Promise<Page> {
  // The profile is removed after the browser, whose own children hold its pipes.
  const profile = temporaryDirectory(t, async () => {
    process.kill(-(child.pid ?? 0), 'SIGKILL');
    input.destroy();
    output.destroy();
    await exitOf(child);
  });
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', `--user-data-dir=${profile}`];
  const child = spawn(browser, [...flags, '--remote-debugging-pipe', 'about:blank'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true });
  const [, , , input, output] = child.stdio as unknown as [null, null, null, Writable, Readable];
  const waiting = new Map<number, { resolve: (answer: Answer) => void; reject: (error: Error) => void }>();
  let pending = '';
  output.on('data', (chunk: Buffer) => {
    const parts = (pending + chunk.toString('utf8')).split('\0');
    pending = parts.pop() ?? '';
    for (const part of parts) {
      const answer = JSON.parse(part) as Answer;
      waiting.get(answer.id ?? -1)?.resolve(answer);
    }
  });
  child.once('exit', () => { for (const { reject } of waiting.values()) reject(new Error('The browser ended')); });
  let count = 0;
  const send = async (method: string, params: object, sessionId?: string): Promise<Record<string, unknown>> => {
    const id = (count += 1);
    const answered = new Promise<Answer>((resolve, reject) => waiting.set(id, { resolve, reject }));
    input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    const { result, error } = await answered;
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result ?? {};
  };
  const { targetId } = await send('Target.createTarget', { url: address });
  const { sessionId } = (await send('Target.attachToTarget', { targetId, flatten: true })) as { sessionId: string };
  const evaluate = async (expression: string): Promise<unknown> => {
    const { result, exceptionDetails } = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true }, sessionId);
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { value?: unknown }).value;
  };
  // Until the page is there, the empty one before it answers, or goes away under the question.
  const isLoaded = `document.readyState === 'complete' && location.href.startsWith(${JSON.stringify(address)})`;
  while ((await evaluate(isLoaded).catch(() => false)) !== true) await new Promise((done) => setTimeout(done, 20));
  return { evaluate };
}
