import { ClosedError, ProtocolError, QwenError, RequestError, TimeoutError, WorkerExitedError, asError } from '../errors.js';
import type { WorkerExit } from '../errors.js';
import { newId } from '../ids.js';
import type { Logger } from '../logging.js';
import type { Transport } from '../transport/transport.js';
import type { ControlRequestLine, ControlResponseLine, ErrorBody, NestedResponseLine } from '../wire/generated.js';
import type { UnknownEvent, WireEvent } from '../wire/messages.js';
import { isUnknown, parseLine } from '../wire/parse.js';
import type { ParsedLine } from '../wire/parse.js';
import { TextLines } from '../wire/text_line.js';
import type { TextSink } from '../wire/text_line.js';

/** The protocol that this SDK speaks. */
export const PROTOCOL_VERSION = '1.0';

/** What a worker says about itself in its first line. */
export interface Handshake {
  readonly protocolVersion: string;
  readonly capabilities: readonly string[];
  readonly sessionId: string | undefined;
  /** Program and version, such as `qwen-0.1.0`. */
  readonly program: string;
  readonly model: string;
}

/** Receives what a connection reads for one session. */
export interface SessionListener {
  /** Who takes the pieces of text of a prompt. */
  textSink(promptId: string): TextSink | undefined;
  onEvent(event: WireEvent | UnknownEvent, size: number): void;
  onControlRequest(line: ControlRequestLine): void;
  onControlCancel(requestId: string): void;
  onExit(error: QwenError): void;
}

export interface ConnectionOptions {
  readonly logger: Logger;
  readonly stderr: ((text: string) => void) | undefined;
  readonly startTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

export interface RequestOptions {
  readonly sessionId?: string;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
}

interface PendingRequest {
  readonly subtype: string;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** One stream of lines to a worker or a hub: handshake, control requests, back-pressure and the end. */
export class Connection {
  readonly #transport: Transport;
  readonly #options: ConnectionOptions;
  readonly #listeners = new Map<string, SessionListener>();
  /** Receives every line, when the other side is a worker and not a hub. */
  #onlyListener: SessionListener | undefined;
  readonly #pending = new Map<string, PendingRequest>();
  readonly #textLines = new TextLines();
  readonly #fullQueues = new Set<object>();
  #isPaused = false;
  #users = 0;
  #isClosing = false;
  #exited: QwenError | undefined;
  #fatal: ErrorBody | undefined;
  #onHandshake: ((result: Handshake | QwenError) => void) | undefined;
  readonly #exit: Promise<void>;
  #resolveExit!: () => void;

  constructor(transport: Transport, options: ConnectionOptions) {
    this.#transport = transport;
    this.#options = options;
    this.#exit = new Promise((resolve) => { this.#resolveExit = resolve; });
  }

  get pid(): number | undefined {
    return this.#transport.pid;
  }

  get isOpen(): boolean {
    return this.#exited === undefined && !this.#isClosing;
  }

  /** Starts the other side and waits for its first line. */
  open(): Promise<Handshake> {
    this.retain();
    return new Promise<Handshake>((resolve, reject) => {
      const { startTimeoutMs } = this.#options;
      const timer = setTimeout(() => {
        this.#onHandshake?.(new TimeoutError('start', this.#silence(startTimeoutMs)));
        this.#transport.kill('SIGKILL');
      }, startTimeoutMs);
      this.#onHandshake = (result) => {
        this.#onHandshake = undefined;
        clearTimeout(timer);
        if (result instanceof QwenError) reject(result);
        else resolve(result);
      };
      this.#transport.open({
        onLines: (lines) => { this.#lines(lines); },
        onTooLongLine: (bytes) => { this.#tooLong(bytes); },
        onStderr: (text) => { this.#stderr(text); },
        onExit: (exit, error) => { this.#end(exit, error); },
      });
    }).finally(() => { this.release(); });
  }

  /** Describes a worker that did not greet, with its own error or what it wrote to standard error. */
  #silence(milliseconds: number): string {
    if (this.#fatal !== undefined) return `The worker cannot start, and does not end: ${this.#fatal.message}`;
    const { hasClosedOutput = false, stderrTail = '' } = this.#transport;
    const what = hasClosedOutput ? 'closed its output without a handshake' : `said nothing for ${String(milliseconds)} ms`;
    const last = stderrTail.trim().split('\n').slice(-3).join('\n').slice(-500);
    return `The worker ${what}; it may not be a qwen program${last === '' ? '' : `. Its standard error ends with: ${last}`}`;
  }

  /** Directs the lines of a session to a listener; without an id every line. */
  listen(sessionId: string | undefined, listener: SessionListener): void {
    if (sessionId === undefined) this.#onlyListener = listener;
    else this.#listeners.set(sessionId, listener);
  }

  /** True if the lines of a session have a listener. */
  isListening(sessionId: string): boolean {
    return this.#listeners.has(sessionId);
  }

  /** True while a session listens. */
  get isUsed(): boolean {
    return this.#listeners.size > 0;
  }

  unlisten(sessionId: string): void {
    this.#listeners.delete(sessionId);
  }

  /** Directs the lines of a session to its listener under another id. */
  relisten(from: string, to: string): void {
    const listener = this.#listeners.get(from);
    if (listener === undefined) return;
    this.#listeners.delete(from);
    this.#listeners.set(to, listener);
  }

  /** While somebody uses the connection it keeps the event loop alive. */
  retain(): void {
    this.#users += 1;
    if (this.#users === 1) this.#transport.setRef(true);
  }

  release(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#transport.setRef(false);
  }

  async send(line: object): Promise<void> {
    if (this.#exited !== undefined) throw this.#exited;
    await this.#transport.write(JSON.stringify(line));
  }

  /** Sends a line and does not care whether it arrives: the other side's end is reported elsewhere. */
  post(line: object): void {
    this.send(line).catch((error: unknown) => {
      this.#options.logger.debug('line was not sent', { error: asError(error).message });
    });
  }

  /** Asks the other side something and waits for the answer. */
  request(subtype: string, fields: object = {}, options: RequestOptions = {}): Promise<unknown> {
    // Unique over processes too: the stored lines of a session contain the answers to earlier ones.
    const requestId = `sdk-${newId()}`;
    const line = { type: 'control_request', request_id: requestId, subtype, session_id: options.sessionId, ...fields };
    return this.exchange(requestId, subtype, line, options);
  }

  /** Sends a line whose answer is a `control_response` with this id. */
  async exchange(requestId: string, subtype: string, line: object, options: RequestOptions): Promise<unknown> {
    if (this.#exited !== undefined) throw this.#exited;
    options.signal?.throwIfAborted();
    const timeoutMs = options.timeoutMs ?? this.#options.requestTimeoutMs;
    this.retain();
    let cleanUp: (() => void) | undefined;
    try {
      return await new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          reject(new TimeoutError('request', `${subtype} was not answered within ${String(timeoutMs)} ms`));
        }, timeoutMs);
        const onAbort = (): void => {
          this.post({ type: 'control_cancel_request', request_id: requestId });
          reject(asError(options.signal?.reason));
        };
        options.signal?.addEventListener('abort', onAbort, { once: true });
        cleanUp = () => {
          clearTimeout(timer);
          options.signal?.removeEventListener('abort', onAbort);
        };
        this.#pending.set(requestId, { subtype, resolve, reject });
        // The answer may be behind messages that nobody reads meanwhile.
        this.#applyPause();
        this.send(line).catch(reject);
      });
    } finally {
      cleanUp?.();
      this.#pending.delete(requestId);
      this.#applyPause();
      this.release();
    }
  }

  /** Marks a queue as full or not. While one is full nothing is read, and the other side waits. */
  setFull(queue: object, isFull: boolean): void {
    if (isFull) this.#fullQueues.add(queue);
    else this.#fullQueues.delete(queue);
    this.#applyPause();
  }

  #applyPause(): void {
    const shouldPause = this.#fullQueues.size > 0 && this.#pending.size === 0 && !this.#isClosing && this.#exited === undefined;
    if (shouldPause === this.#isPaused) return;
    this.#isPaused = shouldPause;
    if (shouldPause) this.#transport.pause();
    else this.#transport.resume();
  }

  /**
   * Ends the other side: a farewell (a request to end, or the end of input), then SIGTERM, then SIGKILL. Returns within
   * `timeoutMs`, whatever happens. Until it is gone its questions are answered.
   */
  async close(timeoutMs: number, farewell?: object): Promise<void> {
    if (this.#exited !== undefined) return;
    this.#isClosing = true;
    this.#applyPause();
    this.retain();
    try {
      if (farewell === undefined) this.#transport.end();
      else this.post(farewell);
      if (await this.#exitsWithin(timeoutMs * 0.4)) return;
      this.#transport.end();
      this.#transport.kill('SIGTERM');
      if (await this.#exitsWithin(timeoutMs * 0.4)) return;
      this.#transport.kill('SIGKILL');
      await this.#exitsWithin(timeoutMs * 0.2);
    } finally {
      this.release();
    }
  }

  /** Ends the other side at once. */
  kill(): void {
    this.#transport.kill('SIGKILL');
  }

  async #exitsWithin(milliseconds: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, milliseconds); });
    await Promise.race([this.#exit, late]);
    clearTimeout(timer);
    return this.#exited !== undefined;
  }

  #stderr(text: string): void {
    try {
      this.#options.stderr?.(text);
    } catch (error) {
      this.#options.logger.error('stderr callback failed', { error: asError(error).message });
    }
  }

  #tooLong(bytes: number): void {
    this.#options.logger.warn('worker wrote a line that is too long', { bytes });
    this.#deliver({ type: 'unknown', reason: 'too_long', data: { bytes } }, undefined, 0);
  }

  #lines(lines: readonly string[]): void {
    const textLines = this.#textLines;
    for (const line of lines) if (!textLines.deliver(line) && line !== '' && line !== '\r') this.#line(line);
  }

  #line(text: string): void {
    const line = parseLine(text);
    if (this.#onHandshake !== undefined) {
      this.#handshake(line, text);
      return;
    }
    if (isUnknown(line)) {
      this.#options.logger.warn('worker wrote a line that this version does not know', { reason: line.reason });
      const { session_id: sessionId } = (line.data ?? {}) as { session_id?: unknown };
      this.#deliver(line, typeof sessionId === 'string' ? sessionId : undefined, text.length);
      return;
    }
    if (!('type' in line)) {
      if ('error' in line) this.#fatal = line.error;
      else this.#textLines.learn(text, line, (promptId, sessionId) => this.#listener(sessionId)?.textSink(promptId));
    } else if (line.type === 'control_response') {
      this.#answer(line);
      return;
    } else if (line.type === 'control_request') {
      this.#listener(line.session_id)?.onControlRequest(line);
      return;
    } else if (line.type === 'control_cancel_request') {
      for (const listener of this.#eachListener(line.session_id ?? undefined)) listener.onControlCancel(line.request_id);
      return;
    }
    const { session_id: sessionId, prompt_id: promptId } = line as { session_id?: string | null; prompt_id?: string | null };
    // A prompt that is withdrawn before its worker has taken up the session ends under the worker's id.
    const isKnown = sessionId == null || this.#listener(sessionId) !== undefined;
    this.#deliver(line, (isKnown ? sessionId : promptId?.split('########')[0]) ?? undefined, text.length);
  }

  #listener(sessionId: string | undefined): SessionListener | undefined {
    return this.#onlyListener ?? (sessionId === undefined ? undefined : this.#listeners.get(sessionId));
  }

  #eachListener(sessionId: string | undefined): Iterable<SessionListener> {
    const one = this.#listener(sessionId);
    if (one !== undefined) return [one];
    return sessionId === undefined ? this.#listeners.values() : [];
  }

  #deliver(event: ParsedLine, sessionId: string | undefined, size: number): void {
    for (const listener of this.#eachListener(sessionId)) listener.onEvent(event, size);
  }

  #handshake(line: ParsedLine, text: string): void {
    if (!isUnknown(line) && 'choices' in line && line.choices.length === 0 && line.metadata?.protocol_version != null) {
      const version = line.metadata.protocol_version;
      if (version.split('.')[0] !== PROTOCOL_VERSION.split('.')[0]) {
        this.#refuse('unsupported_protocol', `The worker speaks protocol ${version}, this SDK ${PROTOCOL_VERSION}; install matching versions of both`);
        return;
      }
      this.#onHandshake?.({
        protocolVersion: version,
        capabilities: line.metadata.capabilities ?? [],
        sessionId: line.session_id ?? line.metadata.session_id ?? undefined,
        program: line.system_fingerprint ?? '',
        model: line.model ?? '',
      });
      return;
    }
    if (!isUnknown(line) && 'error' in line) {
      // A fatal error; the exit that follows says the rest.
      this.#fatal = line.error;
      return;
    }
    this.#refuse('not_a_worker', `The program does not speak the qwen protocol; its first line was ${JSON.stringify(text.slice(0, 200))}`);
  }

  #refuse(code: string, message: string): void {
    this.#onHandshake?.(new ProtocolError(code, message));
    this.#transport.kill('SIGKILL');
  }

  #answer(line: ControlResponseLine | NestedResponseLine): void {
    const response = line.response as { request_id?: string; subtype?: string; result?: unknown; response?: unknown; error?: unknown };
    const requestId = (line as { request_id?: string }).request_id ?? response.request_id ?? '';
    const pending = this.#pending.get(requestId);
    if (pending === undefined) return;
    if (response.subtype === 'success') {
      pending.resolve(response.result ?? response.response ?? {});
      return;
    }
    const error = response.error;
    const body = typeof error === 'object' && error !== null ? (error as { message: string }) : { message: String(error) };
    pending.reject(new RequestError(pending.subtype, body));
  }

  #end(exit: WorkerExit, error: Error | undefined): void {
    if (this.#exited !== undefined) return;
    const failure = this.#exitError(exit, error);
    this.#exited = failure;
    this.#resolveExit();
    this.#onHandshake?.(failure);
    for (const pending of this.#pending.values()) pending.reject(failure);
    const listeners = this.#onlyListener === undefined ? [...this.#listeners.values()] : [this.#onlyListener];
    for (const listener of listeners) listener.onExit(failure);
  }

  #exitError(exit: WorkerExit, error: Error | undefined): QwenError {
    if (this.#isClosing) return new ClosedError('The connection to the worker');
    if (error !== undefined) return new ProtocolError('cannot_start', `The worker cannot be started: ${error.message}`);
    if (this.#onHandshake !== undefined && this.#fatal === undefined) {
      return new ProtocolError('not_a_worker', 'The program ended before it announced itself; it may not be a qwen program', exit);
    }
    return new WorkerExitedError(this.#fatal === undefined ? 'The worker ended unexpectedly' : 'The worker ended', exit, this.#fatal);
  }
}
