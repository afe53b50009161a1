import { ControlChannel } from './control/channel.js';
import type { PermissionMode } from './control/permissions.js';
import { validate } from './control/schema.js';
import type { InferSchema, SchemaInput } from './control/schema.js';
import { AbortError, ClosedError, StructuredOutputError, TimeoutError, WorkerExitedError, asError } from './errors.js';
import { newId } from './ids.js';
import type { QwenError } from './errors.js';
import { sessionLogger } from './logging.js';
import type { Logger } from './logging.js';
import type { ResolvedOptions, TurnOptions } from './options.js';
import { checkPrompt, isPromptStream, promptLine } from './prompt.js';
import type { Prompt, PromptInput, PromptLine } from './prompt.js';
import { startTurnSpan } from './telemetry.js';
import type { TurnSpan } from './telemetry.js';
import { Turn } from './turn.js';
import type { Connection, Handshake } from './worker/connection.js';
import type { SessionOrigin } from './worker/launch.js';
import type { HubLink } from './worker/hub_link.js';
import { SessionWorker } from './worker/session_worker.js';
import { Setup } from './worker/setup.js';
import type { ControlRequestLine } from './wire/generated.js';
import type { AgentMessage, TurnResult, UnknownEvent, WireEvent } from './wire/messages.js';
import { isUnknown } from './wire/parse.js';
import { TurnReader } from './wire/reader.js';

type Output<S> = S extends SchemaInput ? InferSchema<S> : unknown;
type AnyTurnOptions = TurnOptions<SchemaInput | undefined>;

/** The outcome of a steering prompt: it joined the running turn, or it became a separate turn. */
export type SteerOutcome = { readonly joined: true } | { readonly joined: false; readonly turn: Turn };

interface OpenPrompt {
  readonly turn: Turn;
  readonly line: PromptLine;
  readonly span: TurnSpan;
  readonly onSteered: (() => void) | undefined;
}

const DEFAULT_CLOSE_TIMEOUT_MS = 5000;

/** A conversation with the agent. Make one with `createAgentManager().createSession()`. */
export class Session {
  readonly #options: ResolvedOptions;
  readonly #logger: Logger;
  readonly #link: HubLink;
  readonly #setup: Setup;
  readonly #worker: SessionWorker;
  readonly #channel: ControlChannel;
  readonly #prompts = new Map<string, OpenPrompt>();
  readonly #subscribers = new Set<(message: AgentMessage) => void>();
  /** The open sessions of the manager, this one included. */
  readonly #siblings: Set<Session>;
  #signal: AbortSignal | undefined;
  /** The connection that is kept alive for running turns. */
  #retained: Connection | undefined;
  /** Ends when the prompts that were given so far have been sent. */
  #outbox: Promise<void> = Promise.resolve();
  #lastResult: TurnResult | undefined;
  #closing: Promise<void> | undefined;
  #aborted: AbortError | undefined;

  /** @internal */
  constructor(link: HubLink, options: ResolvedOptions, sessionId: string, origin: SessionOrigin, siblings: Set<Session>) {
    this.#options = options;
    this.#link = link;
    this.#siblings = siblings;
    this.#logger = sessionLogger(options.logger, { session_id: sessionId });
    this.#setup = new Setup(options);
    const handlers = { permission: options.onPermissionRequest, hooks: this.#setup.hooks, mcp: this.#setup.mcp };
    this.#channel = new ControlChannel(handlers, (line) => { this.#worker.current?.post(line); }, this.#logger);
    const owner = {
      textSink: (promptId: string) => this.#prompts.get(promptId)?.turn.textSink(promptId),
      onEvent: (event: WireEvent | UnknownEvent, size: number) => { this.#event(event, size); },
      onControlRequest: (line: ControlRequestLine) => { this.#channel.handle(line); },
      onControlCancel: (requestId: string) => { this.#channel.cancel(requestId); },
      onLost: (error: QwenError) => { this.#lost(error); },
    };
    this.#worker = new SessionWorker(link, options, this.#setup, owner, this.#logger, sessionId, origin);
  }

  /** @internal Waits for the first worker. The signal ends the session, now and later. */
  async open(signal?: AbortSignal): Promise<this> {
    this.#siblings.add(this);
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    try {
      await this.#worker.connection();
    } catch (error) {
      await this.close();
      throw this.#aborted ?? error;
    }
    return this;
  }

  readonly #onAbort = (): void => { this.abort(this.#signal?.reason); };

  /** @internal Closes the session; its turns throw an AbortError. */
  abort(reason: unknown): void {
    this.#aborted = new AbortError(reason);
    for (const { turn } of [...this.#prompts.values()]) turn.abort(this.#aborted);
    void this.close();
  }

  /** The session's id, under which it can be resumed. It changes when a crash makes a fork (`onCrash: 'fork'`). */
  get id(): string {
    return this.#worker.sessionId;
  }

  /** The result of the last turn that ended; kept when a worker dies. */
  get lastResult(): TurnResult | undefined {
    return this.#lastResult;
  }

  /** The worker's announcement: protocol version, capabilities, program. */
  get handshake(): Handshake | undefined {
    return this.#worker.handshake;
  }

  /** The process id of the current worker, or of the hub. */
  get pid(): number | undefined {
    return this.#worker.current?.pid;
  }

  /**
   * Sends a prompt and returns its messages. Prompts of a session run one after the other. With a stream of
   * prompts the iteration continues until the stream has ended and the last prompt has its result.
   */
  stream<S extends SchemaInput | undefined = undefined>(prompt: PromptInput, options: TurnOptions<S> = {}): Turn<Output<S>> {
    checkPrompt(prompt);
    const turn = this.#turn(options.outputSchema);
    this.#watch(turn, options);
    if (isPromptStream(prompt)) void this.#sendAll(turn, prompt, options);
    else this.#send(turn, prompt, options);
    if (!isPromptStream(prompt)) turn.endInput();
    return turn as Turn<Output<S>>;
  }

  /** Sends a prompt and waits for its result. */
  async run<S extends SchemaInput | undefined = undefined>(prompt: PromptInput, options: TurnOptions<S> = {}): Promise<TurnResult<Output<S>>> {
    return this.stream(prompt, options).result();
  }

  /** Adds a prompt to the running turn before its next model call. Without a running turn it is an ordinary prompt. */
  async steer(prompt: Prompt): Promise<SteerOutcome> {
    checkPrompt(prompt);
    const turn = this.#turn(undefined);
    return new Promise((resolve) => {
      const onSteered = (): void => {
        resolve({ joined: true });
        turn.settle();
      };
      turn.onStarted = () => { resolve({ joined: false, turn }); };
      this.#send(turn, prompt, {}, { delivery: 'steer' }, onSteered);
      turn.endInput();
    });
  }

  /** Ends the running turn with a `cancelled` result. The session continues. */
  async interrupt(): Promise<void> {
    const [promptId] = this.#prompts.keys();
    if (promptId !== undefined) await this.#cancel(promptId);
  }

  async setModel(model: string | undefined, options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.request('set_model', { model: model ?? null }, options);
  }

  async setPermissionMode(mode: PermissionMode, options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.request('set_permission_mode', { mode }, options);
  }

  /** Restores files to their state before a prompt. Works between turns. */
  async rewindFiles(promptId: string, options: { dryRun?: boolean; signal?: AbortSignal } = {}): Promise<{ filesChanged: string[] }> {
    const fields = { user_message_id: promptId, dry_run: options.dryRun ?? false };
    return (await this.request('rewind_files', fields, options)) as { filesChanged: string[] };
  }

  /** Sends any control request of the protocol, such as `get_context_usage` or `mcp_status`. */
  async request(subtype: string, fields: object = {}, options: { signal?: AbortSignal; timeoutMs?: number } = {}): Promise<unknown> {
    const connection = await this.#worker.connection();
    return connection.request(subtype, fields, { ...options, sessionId: this.id });
  }

  /** A new session with the history of this one, up to `at` (a prompt or checkpoint) when given. */
  fork(options: { readonly at?: string } = {}): Promise<Session> {
    const origin = { kind: 'fork', of: this.id, at: options.at } as const;
    return new Session(this.#link, this.#options, newId(), origin, this.#siblings).open();
  }

  /** Receives messages that belong to no turn: notices, heartbeats between turns, unknown lines. */
  subscribe(listener: (message: AgentMessage) => void): () => void {
    this.#subscribers.add(listener);
    return () => { this.#subscribers.delete(listener); };
  }

  /** Ends the session and its worker. A running turn is cancelled. Returns within `timeouts.close`. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    await this.#worker.close(this.#options.timeouts?.close ?? DEFAULT_CLOSE_TIMEOUT_MS);
    this.#lost(new ClosedError(`The session ${this.id}`));
    this.#setup.dispose();
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#siblings.delete(this);
  }

  #turn(schema: SchemaInput | undefined): Turn {
    const turn: Turn = new Turn({
      cancel: (promptId) => this.#cancel(promptId),
      setFull: (queue, isFull) => { this.#worker.current?.setFull(queue, isFull); },
      finalize: (result) => this.#finalize(turn, schema, result),
      onPromptEnd: (promptId, outcome) => { this.#promptEnd(promptId, outcome); },
    });
    return turn;
  }

  /** Aborts the turn when its signal aborts or its time-out expires. */
  #watch(turn: Turn, { signal, timeoutMs = this.#options.timeouts?.turn }: AnyTurnOptions): void {
    const onAbort = (): void => { turn.abort(new AbortError(signal?.reason)); };
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    const late = (): void => { turn.abort(new TimeoutError('turn', `The turn took longer than ${String(timeoutMs)} ms`)); };
    const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
    void turn.settled.then(() => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    });
  }

  async #sendAll(turn: Turn, prompts: AsyncIterable<Prompt>, options: AnyTurnOptions): Promise<void> {
    try {
      for await (const prompt of prompts) {
        if (turn.isSettled) return;
        checkPrompt(prompt);
        this.#send(turn, prompt, { ...options, promptId: undefined });
      }
    } catch (error) {
      turn.abort(asError(error));
    } finally {
      turn.endInput();
    }
  }

  #send(turn: Turn, prompt: Prompt, options: AnyTurnOptions, extra: Partial<PromptLine> = {}, onSteered?: () => void): void {
    const promptId = options.promptId ?? `${this.id}########${newId()}`;
    turn.addPrompt(promptId);
    const deliver = async (): Promise<void> => {
      const connection = await this.#worker.connection();
      if (turn.isSettled || turn.isAborted) {
        turn.withdraw(promptId);
        return;
      }
      const span = await startTurnSpan(this.id, promptId);
      // Nothing is sent once the session is being closed.
      if (this.#closing !== undefined) throw new ClosedError(`The session ${this.id}`);
      const traced = { traceparent: span.traceparent, tracestate: span.tracestate };
      const line = { ...promptLine(this.id, promptId, prompt, options), ...traced, ...extra };
      this.#prompts.set(promptId, { turn, line, span, onSteered });
      this.#updateRetention();
      this.#logger.info('prompt sent', { prompt_id: promptId });
      await connection.send(line);
    };
    this.#outbox = this.#outbox.then(deliver).catch((error: unknown) => { turn.settle(this.#aborted ?? asError(error)); });
  }

  async #cancel(promptId: string): Promise<void> {
    if (!this.#prompts.has(promptId)) {
      // It was not sent yet: it will not be.
      await this.#outbox;
      if (!this.#prompts.has(promptId)) return;
    }
    const connection = await this.#worker.connection();
    const requestId = `sdk-cancel-${newId()}`;
    const line = { type: 'control/cancel', session_id: this.id, prompt_id: promptId, request_id: requestId, reason: 'escape' };
    await connection.exchange(requestId, 'cancel', line, {});
  }

  #finalize(turn: Turn, schema: SchemaInput | undefined, result: TurnResult): TurnResult | Promise<TurnResult> {
    const store = this.#worker.store;
    if (schema === undefined && store === undefined) return result;
    return (async () => {
      await store?.flush();
      return schema === undefined ? result : this.#validated(turn, schema, result);
    })();
  }

  async #validated(turn: Turn, schema: SchemaInput, result: TurnResult): Promise<TurnResult> {
    if (result.status !== 'done' || result.structuredOutput === undefined) {
      const why = result.error?.message ?? `the turn ended with the status ${result.status}`;
      turn.failSchema(new StructuredOutputError(`There is no structured output: ${why}`, result));
      return result;
    }
    try {
      return { ...result, structuredOutput: await validate(schema, result.structuredOutput) };
    } catch (error) {
      const message = `The structured output does not fit the schema: ${asError(error).message}`;
      turn.failSchema(new StructuredOutputError(message, result, { cause: error }));
      return { ...result, structuredOutput: undefined };
    }
  }

  #promptEnd(promptId: string, outcome: TurnResult | Error | undefined): void {
    const prompt = this.#prompts.get(promptId);
    if (prompt === undefined) return;
    this.#prompts.delete(promptId);
    prompt.span.end(outcome);
    this.#updateRetention();
    if (outcome === undefined || outcome instanceof Error) return;
    this.#lastResult = outcome;
    const { status, durationMs, usage } = outcome;
    this.#logger.info('turn ended', { prompt_id: promptId, status, duration_ms: durationMs, total_tokens: usage?.total_tokens });
  }

  /** While turns run, their connection keeps the event loop alive. */
  #updateRetention(): void {
    const wanted = this.#prompts.size > 0 ? this.#worker.current : undefined;
    if (wanted === this.#retained) return;
    this.#retained?.release();
    wanted?.retain();
    this.#retained = wanted;
  }

  #event(event: WireEvent | UnknownEvent, size: number): void {
    const source = (isUnknown(event) ? event.data : event) as { prompt_id?: string | null } | null;
    const fork = forkOf(event);
    if (fork !== undefined) this.#worker.follow(fork);
    const promptId = source?.prompt_id ?? (isUnknown(event) ? this.#prompts.keys().next().value : undefined);
    const prompt = promptId == null ? undefined : this.#prompts.get(promptId);
    if (promptId == null || prompt === undefined) {
      this.#publish(event);
    } else if (prompt.onSteered !== undefined && 'event' in event && event.event === 'Steered') {
      prompt.onSteered();
    } else {
      prompt.turn.accept(promptId, event, size);
    }
  }

  #publish(event: WireEvent | UnknownEvent): void {
    if (this.#subscribers.size === 0) return;
    const deliver = (message: AgentMessage): void => {
      for (const subscriber of this.#subscribers) {
        try {
          subscriber(message);
        } catch (error) {
          this.#logger.error('subscriber failed', { error: asError(error).message });
        }
      }
    };
    if (isUnknown(event)) deliver(event);
    else new TurnReader().read(event, deliver);
  }

  #lost(error: QwenError): void {
    if (error instanceof WorkerExitedError) error.lastResult = this.#lastResult;
    this.#channel.cancelAll(error);
    for (const { turn } of [...this.#prompts.values()]) turn.settle(error);
    this.#updateRetention();
  }
}

/** The session in which a turn continues, where the hub reports a fork after a crash. */
function forkOf(event: WireEvent | UnknownEvent): string | undefined {
  if (isUnknown(event) || !('event' in event) || event.event !== 'Custom') return undefined;
  const { kind, forked_from: from, session_id: fork } = (event.value ?? {}) as { kind?: unknown; forked_from?: unknown; session_id?: unknown };
  return kind === 'worker_restarted' && typeof from === 'string' && typeof fork === 'string' ? fork : undefined;
}
