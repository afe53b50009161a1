import { AbortError, asError } from './errors.js';
import type { StructuredOutputError } from './errors.js';
import { MessageQueue } from './message_queue.js';
import type { CommandLine } from './wire/generated.js';
import type { AgentMessage, TurnResult, UnknownEvent, WireEvent } from './wire/messages.js';
import { isUnknown } from './wire/parse.js';
import { TurnReader } from './wire/reader.js';
import type { TextSink } from './wire/text_line.js';

/** What a turn needs of its session. */
export interface TurnHost {
  /** Asks the worker to end the turn of this prompt, or to withdraw the prompt. */
  cancel(promptId: string): Promise<void>;
  setFull(turn: object, isFull: boolean): void;
  /** Completes a result: validates structured output, waits for the session store. */
  finalize(result: TurnResult): TurnResult | Promise<TurnResult>;
  /** Called once for each prompt, when it has ended. */
  onPromptEnd(promptId: string, outcome: TurnResult | Error | undefined): void;
}

interface OpenPrompt {
  readonly reader: TurnReader;
  hasStarted: boolean;
}

type Waiter = { resolve(step: IteratorResult<AgentMessage>): void; reject(error: Error): void };

const DONE: IteratorResult<AgentMessage> = { done: true, value: undefined };
const ABORT_GRACE_MS = 3000;

/**
 * The messages of a turn, as they come. Iterate over it, or call `result()`. It ends after the terminal record, or
 * throws an error that states why there is none. A consumer that is slower than the worker slows the worker down.
 */
export class Turn<T = unknown> implements AsyncIterable<AgentMessage> {
  readonly #host: TurnHost;
  readonly #queue: MessageQueue;
  readonly #prompts = new Map<string, OpenPrompt>();
  #acceptsPrompts = true;
  #isDiscarding = false;
  #isSettled = false;
  #error: Error | undefined;
  /** Calls of `next()` that wait, in their order. */
  readonly #waiters: Waiter[] = [];
  #lastResult: TurnResult | undefined;
  #abortError: Error | undefined;
  #abortTimer: NodeJS.Timeout | undefined;
  #schemaError: StructuredOutputError | undefined;
  #resolveSettled!: () => void;
  /** Resolves when the turn has ended, with a result or with an error. @internal */
  readonly settled: Promise<void>;
  /** Called when the worker begins with the turn. @internal */
  onStarted: (() => void) | undefined;

  constructor(host: TurnHost) {
    this.#host = host;
    this.#queue = new MessageQueue((isFull) => { host.setFull(this, isFull); });
    this.settled = new Promise((resolve) => { this.#resolveSettled = resolve; });
  }

  /** @internal */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** True from the moment the turn is aborted, before the worker has ended it. @internal */
  get isAborted(): boolean {
    return this.#abortError !== undefined;
  }

  /** The prompts that are still being worked on, the running one first. @internal */
  get promptIds(): readonly string[] {
    return [...this.#prompts.keys()];
  }

  /** The result of the turn, of the last one when the input was a stream. Unread messages are dropped. */
  async result(): Promise<TurnResult<T>> {
    if (!this.#isSettled) {
      this.#discard();
      await this.settled;
    }
    if (this.#error !== undefined) throw this.#error;
    if (this.#lastResult === undefined) throw new Error('There was no prompt, so there is no result');
    return this.#lastResult as TurnResult<T>;
  }

  /** The text of the last message of the turn. */
  async text(): Promise<string> {
    return (await this.result()).text;
  }

  /** Ends the turn; its terminal record follows. The session continues. */
  async interrupt(): Promise<void> {
    await Promise.all(this.promptIds.map((promptId) => this.#host.cancel(promptId)));
  }

  /** Ends the turn and has the iterator throw this error. @internal */
  abort(error: Error): void {
    if (this.#isSettled || this.#abortError !== undefined) return;
    this.#abortError = error;
    this.#discard();
    this.interrupt().catch(() => undefined);
    this.#abortTimer = setTimeout(() => { this.settle(error); }, ABORT_GRACE_MS);
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<AgentMessage> {
    const queue = this.#queue;
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next: () => {
        const message = queue.shift();
        return message === undefined ? this.#wait() : Promise.resolve({ done: false, value: message });
      },
      return: async () => {
        await this.#abandon();
        return DONE;
      },
    };
  }

  /** The next message, if it is there already. @internal */
  take(): AgentMessage | undefined {
    return this.#queue.shift();
  }

  #wait(): Promise<IteratorResult<AgentMessage>> {
    if (this.#isSettled) return this.#error === undefined ? Promise.resolve(DONE) : Promise.reject(this.#error);
    return new Promise((resolve, reject) => { this.#waiters.push({ resolve, reject }); });
  }

  /** The consumer left: the turn is ended, and what still comes of it is dropped. */
  async #abandon(): Promise<void> {
    if (this.#isSettled) return;
    this.#discard();
    await this.interrupt().catch(() => undefined);
    await this.settled;
  }

  #discard(): void {
    this.#isDiscarding = true;
    this.#queue.clear();
  }

  /** Registers a prompt whose lines belong to this turn. @internal */
  addPrompt(promptId: string): void {
    this.#prompts.set(promptId, { reader: new TurnReader(), hasStarted: false });
  }

  /** Takes back a prompt that was never sent. @internal */
  withdraw(promptId: string): void {
    if (this.#prompts.delete(promptId)) this.#settleIfDone();
  }

  /** No further prompt will be added. @internal */
  endInput(): void {
    this.#acceptsPrompts = false;
    this.#settleIfDone();
  }

  /** Takes the pieces of text of one of the prompts, until it ends. @internal */
  textSink(promptId: string): TextSink | undefined {
    const prompt = this.#prompts.get(promptId);
    if (prompt === undefined) return undefined;
    const { reader } = prompt;
    const queue = this.#queue;
    return {
      acceptText: (message, size) => {
        reader.readText(message.text);
        // This is called for most lines of a stream, so the usual case comes first.
        if (this.#waiters.length === 0 && !this.#isDiscarding) queue.push(message, size);
        else this.#emit(message, size);
      },
    };
  }

  /** Takes a line of one of the prompts. @internal */
  accept(promptId: string, event: WireEvent | UnknownEvent, size: number): void {
    if (isUnknown(event)) {
      this.#emit(event, size);
      return;
    }
    const prompt = this.#prompts.get(promptId);
    if (prompt === undefined) return;
    const isError = 'choices' in event && event.metadata?.error != null && event.metadata.turn == null;
    let charge = size;
    const emit = (message: AgentMessage): void => {
      if (message.type === 'result') return;
      this.#emit(message, charge);
      charge = 0;
    };
    const result = prompt.reader.read(event, emit);
    if (result !== undefined) this.#complete(promptId, result);
    else if ('type' in event && event.type === 'result/command') this.#command(promptId, event);
    else if (isError && !prompt.hasStarted && !isModelError(event)) this.#complete(promptId, refusedResult(promptId, event));
    else if (!isError) prompt.hasStarted = true;
    if (prompt.hasStarted) this.onStarted?.();
  }

  #command(promptId: string, event: CommandLine): void {
    if (event.result.type !== 'submit_prompt') this.#complete(promptId, commandResult(event));
  }

  #complete(promptId: string, result: TurnResult): void {
    let final: TurnResult | Promise<TurnResult>;
    try {
      final = this.#host.finalize(result);
    } catch (error) {
      this.settle(asError(error));
      return;
    }
    if (final instanceof Promise) {
      final.then(
        (value) => { this.#end(promptId, value); },
        (error: unknown) => { this.settle(asError(error)); },
      );
    } else {
      this.#end(promptId, final);
    }
  }

  #end(promptId: string, result: TurnResult): void {
    if (!this.#prompts.delete(promptId)) return;
    this.#lastResult = result;
    this.#host.onPromptEnd(promptId, result);
    this.#emit({ type: 'result', result, raw: result.raw }, 0);
    this.#settleIfDone();
  }

  #settleIfDone(): void {
    if (this.#acceptsPrompts || this.#prompts.size > 0) return;
    const aborted = this.#abortError;
    if (aborted instanceof AbortError) this.settle(new AbortError(aborted.cause, this.#lastResult));
    else this.settle(aborted);
  }

  /** Ends the turn, with an error or without one. Messages that were received before are still delivered. @internal */
  settle(error?: Error): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    // What was received before is still delivered; what comes late is dropped.
    this.#isDiscarding = true;
    this.#acceptsPrompts = false;
    clearTimeout(this.#abortTimer);
    // A turn that was aborted says so, whatever ended it in the end.
    const failure = error instanceof AbortError ? error : this.#abortError ?? error;
    this.#error = failure ?? this.#schemaError;
    for (const promptId of this.#prompts.keys()) this.#host.onPromptEnd(promptId, failure);
    this.#prompts.clear();
    this.onStarted?.();
    this.#resolveSettled();
    for (const waiter of this.#waiters.splice(0)) {
      if (this.#error === undefined) waiter.resolve(DONE);
      else waiter.reject(this.#error);
    }
  }

  /** Remembers why the result has no structured output; `result()` and the iterator throw it at the end. @internal */
  failSchema(error: StructuredOutputError): void {
    this.#schemaError = error;
  }

  #emit(message: AgentMessage, size: number): void {
    if (this.#isDiscarding) return;
    const waiter = this.#waiters.shift();
    if (waiter === undefined) this.#queue.push(message, size);
    else waiter.resolve({ done: false, value: message });
  }
}

function emptyResult(event: WireEvent, promptId: string, sessionId: string): TurnResult {
  return {
    sessionId,
    promptId,
    status: 'done',
    done: true,
    ok: true,
    isError: false,
    text: '',
    summary: '',
    toolCalls: [],
    structuredOutput: undefined,
    error: undefined,
    usage: undefined,
    usageByModel: {},
    usageByAgent: {},
    costUsd: undefined,
    permissionDenials: [],
    controlErrors: [],
    durationMs: 0,
    modelCallCount: 0,
    toolCallCount: 0,
    raw: event,
  };
}

/** A command that asked no model ends its prompt by itself. */
function commandResult(event: CommandLine): TurnResult {
  const text = event.result.content ?? '';
  const isError = event.result.level === 'error';
  const error = isError ? { message: text, type: 'invalid_request_error', code: 'command_failed' } : undefined;
  const base = emptyResult(event, event.prompt_id, event.session_id);
  return { ...base, text, summary: text, error, isError, done: !isError, ok: !isError, status: isError ? 'error' : 'done' };
}

/** True for an error of the model, which belongs to a turn, even before its first other line. */
function isModelError(event: WireEvent): boolean {
  const type = 'choices' in event ? event.metadata?.error?.type : undefined;
  return type === 'api_error' || type === 'connection_error' || type === 'timeout_error';
}

/** A prompt that the worker refused never becomes a turn. */
function refusedResult(promptId: string, event: WireEvent): TurnResult {
  const { metadata, session_id: sessionId } = event as { metadata?: { error?: TurnResult['error'] }; session_id?: string };
  const base = emptyResult(event, promptId, sessionId ?? '');
  return { ...base, status: 'error', done: false, ok: false, isError: true, error: metadata?.error };
}
