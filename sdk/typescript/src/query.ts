import { asError } from './errors.js';
import { createAgentManager } from './manager.js';
import type { AgentManager } from './manager.js';
import type { AgentManagerOptions, TurnOptions } from './options.js';
import { checkOptions } from './options_check.js';
import { checkPrompt } from './prompt.js';
import type { PromptInput } from './prompt.js';
import type { Turn } from './turn.js';
import type { AgentMessage } from './wire/messages.js';

/** Options of a query: those of its session and of its turn. */
export type QueryOptions = AgentManagerOptions & Omit<TurnOptions, 'outputSchema'>;

/**
 * Runs a prompt in a session of its own and yields its messages; the last one is the result. The worker starts with
 * the first message that is asked for and is gone when the iteration ends, however it ends.
 */
export function query(prompt: PromptInput, options: QueryOptions = {}): AsyncIterable<AgentMessage> {
  checkPrompt(prompt);
  checkOptions(options);
  return { [Symbol.asyncIterator]: () => new QueryIterator(prompt, options) };
}

class QueryIterator implements AsyncIterableIterator<AgentMessage> {
  readonly #prompt: PromptInput;
  readonly #options: QueryOptions;
  readonly #manager: AgentManager;
  #turn: Turn | undefined;
  #messages: AsyncIterator<AgentMessage> | undefined;
  #starting: Promise<void> | undefined;
  #isOver = false;

  constructor(prompt: PromptInput, options: QueryOptions) {
    this.#prompt = prompt;
    this.#options = options;
    this.#manager = createAgentManager(options);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<AgentMessage>> {
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined });
    // A message that waits already needs nothing else; most do.
    const waiting = this.#turn?.take();
    if (waiting !== undefined) return Promise.resolve({ done: false, value: waiting });
    if (this.#messages === undefined) {
      this.#starting ??= this.#start();
      return this.#starting.then(() => this.next(), (error: unknown) => this.#end(error));
    }
    return this.#messages.next().then(
      (step) => (step.done ? this.#end() : step),
      (error: unknown) => this.#end(error),
    );
  }

  async return(): Promise<IteratorResult<AgentMessage>> {
    await this.#messages?.return?.();
    return this.#end();
  }

  async #start(): Promise<void> {
    const session = await this.#manager.createSession();
    this.#turn = session.stream(this.#prompt, this.#options);
    this.#messages = this.#turn[Symbol.asyncIterator]();
  }

  async #end(error?: unknown): Promise<IteratorResult<AgentMessage>> {
    this.#isOver = true;
    await this.#manager.close();
    if (error !== undefined) throw asError(error);
    return { done: true, value: undefined };
  }
}
