// Random schedules of run, stream, abort, interrupt, steer and close: every result belongs to its prompt.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { Session, TurnResult } from '@qwen-agent/sdk';
import { place, sdk } from './harness.js';

const SCHEDULES = 200;
const PER_TEST = 50;
/** Schedules that run at once, each in its own session. */
const LANES = 5;

/** A model that answers each prompt with its name, and the names in the order in which they arrived. */
async function echoModel(): Promise<{ url: string; reached: string[]; close: () => void }> {
  const reached: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => { body += chunk.toString(); });
    request.on('end', () => {
      const { messages } = JSON.parse(body) as { messages: Array<{ role: string; content: unknown }> };
      const said = messages.filter(({ role }) => role === 'user').map(({ content }) => JSON.stringify(content));
      const name = said.at(-1)?.match(/prompt-\d+-\d+/g)?.at(-1) ?? 'none';
      reached.push(name);
      response.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' });
      const chunk = (delta: object, finish: string | null = null): void => {
        response.write(`data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
      };
      chunk({ role: 'assistant', content: 'Re: ' });
      chunk({ content: name });
      chunk({}, 'stop');
      response.end('data: [DONE]\n\n');
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return { url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/v1`, reached, close: () => { server.closeAllConnections(); server.close(); } };
}

/** Numbers that depend on the seed alone. */
function generator(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return Math.floor((state / 4_294_967_296) * below);
  };
}

class Schedule {
  readonly #session: Session;
  readonly #seed: number;
  readonly #next: (below: number) => number;
  readonly #open: Array<Promise<void>> = [];
  readonly #steered: string[] = [];
  #count = 0;

  constructor(session: Session, seed: number) {
    this.#session = session;
    this.#seed = seed;
    this.#next = generator(seed);
  }

  #name(): string {
    return `prompt-${String(this.#seed)}-${String((this.#count += 1))}`;
  }

  #check(name: string, { status, text, error }: TurnResult): void {
    const isOwn = `Re: ${name}`.startsWith(text) || this.#steered.some((other) => text === `Re: ${other}`);
    assert.ok(isOwn && ['done', 'cancelled'].includes(status), `${name} has the result of another prompt: ${status} ${text} ${error?.message ?? ''}`);
  }

  async step(): Promise<void> {
    const name = this.#name();
    switch (this.#next(6)) {
      case 0:
        this.#check(name, await this.#session.run(name));
        return;
      case 1:
        this.#open.push(this.#session.run(name).then((result) => { this.#check(name, result); }, ignoreClosed));
        return;
      case 2: {
        const controller = new AbortController();
        const turn = this.#session.run(name, { signal: controller.signal });
        setImmediate(() => { controller.abort(); });
        await turn.then((result) => { this.#check(name, result); }, (error: unknown) => { assert.equal((error as Error).name, 'AbortError'); });
        return;
      }
      case 3: {
        const turn = this.#session.stream(name);
        this.#open.push(turn.result().then((result) => { this.#check(name, result); }, ignoreClosed));
        await turn.interrupt();
        return;
      }
      case 4:
        await this.#session.interrupt();
        return;
      default: {
        this.#steered.push(name);
        const outcome = await this.#session.steer(name);
        if (!outcome.joined) this.#open.push(outcome.turn.result().then((result) => { this.#check(name, result); }, ignoreClosed));
      }
    }
  }

  async run(): Promise<void> {
    for (let steps = 2 + this.#next(6); steps > 0; steps -= 1) await this.step();
    // Some sessions are closed with prompts that wait.
    if (this.#next(10) >= 3) {
      await Promise.all(this.#open);
      const last = this.#name();
      this.#check(last, await this.#session.run(last));
    }
    await this.#session.close();
    await Promise.all(this.#open);
  }
}

function ignoreClosed(error: unknown): void {
  assert.equal((error as Error).name, 'ClosedError', String(error));
}

for (let block = 0; block < SCHEDULES / PER_TEST; block += 1) {
  test(`every result belongs to its prompt and nothing reaches the model after close: schedules from ${String(block * PER_TEST)}`, async (t) => {
    const model = await echoModel();
    t.after(() => { model.close(); });
    const at = await place(t, []);
    const manager = at.manager({ env: { OPENAI_BASE_URL: model.url }, workerPool: { maxWorkers: LANES + 1 } });
    const closedAt = new Map<number, number>();
    const lane = async (first: number): Promise<void> => {
      for (let seed = first; seed < (block + 1) * PER_TEST; seed += LANES) {
        const session = await manager.createSession();
        await new Schedule(session, seed).run();
        // The model runs in this event loop: requests that arrived before the answer to close are counted first.
        for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => { setImmediate(resolve); });
        closedAt.set(seed, model.reached.length);
        await assert.rejects(session.run('late'), sdk.ClosedError);
      }
    };
    await Promise.all(Array.from({ length: LANES }, (_, number) => lane(block * PER_TEST + number)));
    // What was sent before would have arrived by the answer to this one.
    await manager.run('prompt-100000-1');
    assert.equal(closedAt.size, PER_TEST);
    for (const [index, name] of model.reached.entries()) {
      const closed = closedAt.get(Number(name.split('-')[1])) ?? Infinity;
      assert.ok(index < closed, `${name} reached the model after close`);
    }
  });
}
