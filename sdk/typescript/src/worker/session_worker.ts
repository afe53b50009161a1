import { ClosedError, WorkerExitedError } from '../errors.js';
import type { QwenError } from '../errors.js';
import type { Logger } from '../logging.js';
import type { ResolvedOptions } from '../options.js';
import { StoreMirror } from '../store.js';
import { countWorker } from '../telemetry.js';
import type { Connection, Handshake, SessionListener } from './connection.js';
import type { SessionOrigin } from './launch.js';
import type { HubLink } from './hub_link.js';
import type { Setup } from './setup.js';

/** Receives what is read for a session, and its end. */
export interface WorkerOwner extends Omit<SessionListener, 'onExit'> {
  /** The hub is lost, and the session with it. */
  onLost(error: QwenError): void;
}

/** The place of a session in the hub. */
export class SessionWorker {
  readonly #link: HubLink;
  readonly #options: ResolvedOptions;
  readonly #setup: Setup;
  readonly #owner: WorkerOwner;
  readonly #logger: Logger;
  #sessionId: string;
  #store: StoreMirror | undefined;
  #current: Connection | undefined;
  #handshake: Handshake | undefined;
  #connecting: Promise<Connection>;
  #over: QwenError | undefined;
  /** Ends a worker that is still being started. */
  readonly #starting = new AbortController();

  constructor(link: HubLink, options: ResolvedOptions, setup: Setup, owner: WorkerOwner, logger: Logger, sessionId: string, origin: SessionOrigin) {
    this.#link = link;
    this.#options = options;
    this.#setup = setup;
    this.#owner = owner;
    this.#logger = logger;
    this.#sessionId = sessionId;
    this.#connecting = this.#begin(origin);
    this.#connecting.catch(() => undefined);
  }

  get sessionId(): string {
    return this.#sessionId;
  }

  get handshake(): Handshake | undefined {
    return this.#handshake;
  }

  /** The connection, when there is one at this moment. */
  get current(): Connection | undefined {
    return this.#current;
  }

  /** Copies the session to the host's store. */
  get store(): StoreMirror | undefined {
    return this.#store;
  }

  /** The connection to the current worker, as soon as there is one. */
  async connection(): Promise<Connection> {
    this.#throwIfOver();
    const connection = await this.#connecting.catch((error: unknown) => { throw this.#over ?? error; });
    this.#throwIfOver();
    return connection;
  }

  /** Ends the worker, also one that is still being started. */
  async close(timeoutMs: number): Promise<void> {
    this.#over ??= new ClosedError(`The session ${this.#sessionId}`);
    const connection = this.#current;
    if (connection?.isOpen) {
      await this.#link.release(connection, this.#sessionId, timeoutMs);
      return;
    }
    this.#starting.abort();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, timeoutMs); });
    await Promise.race([this.#connecting.catch(() => undefined), late]);
    clearTimeout(timer);
  }

  async #begin(origin: SessionOrigin): Promise<Connection> {
    const { sessionStore, env } = this.#options;
    if (sessionStore !== undefined) {
      const surroundings = { ...process.env, ...env };
      if (origin.kind === 'fork') await new StoreMirror(sessionStore, origin.of, surroundings).restore();
      this.#store = new StoreMirror(sessionStore, this.#sessionId, surroundings);
      if (origin.kind === 'resume') await this.#store.restore();
    }
    return this.#connect(origin);
  }

  async #connect(origin: SessionOrigin): Promise<Connection> {
    this.#throwIfOver();
    const state: { isAccepted: boolean; lost?: QwenError } = { isAccepted: false };
    const listener: SessionListener = {
      textSink: (promptId) => this.#owner.textSink(promptId),
      onEvent: (event, size) => { this.#owner.onEvent(event, size); },
      onControlRequest: (line) => { this.#owner.onControlRequest(line); },
      onControlCancel: (requestId) => { this.#owner.onControlCancel(requestId); },
      onExit: (error) => {
        state.lost = error;
        if (state.isAccepted) this.#lost(error);
      },
    };
    const claim = { options: this.#options, sessionId: this.#sessionId, origin, setup: this.#setup, listener, signal: this.#starting.signal };
    const { connection, handshake } = await this.#link.connect(claim);
    if (state.lost !== undefined) throw state.lost;
    state.isAccepted = true;
    this.#handshake = handshake;
    this.#current = connection;
    this.#logger.info('worker started', { pid: connection.pid, program: handshake.program, origin: origin.kind });
    if (this.#over !== undefined) {
      await this.#link.release(connection, this.#sessionId, this.#options.timeouts?.close ?? 5000);
      throw this.#over;
    }
    return connection;
  }

  #throwIfOver(): void {
    if (this.#over !== undefined) throw this.#over;
  }

  #lost(error: QwenError): void {
    this.#current = undefined;
    if (this.#over !== undefined || error instanceof ClosedError) {
      this.#owner.onLost(error);
      return;
    }
    countWorker('crashed');
    const exit = error instanceof WorkerExitedError ? { exit_code: error.exitCode, signal: error.signal } : {};
    this.#logger.warn('hub lost', { error: error.message, ...exit });
    this.#over = error;
    this.#owner.onLost(error);
  }

  /** After a crash with `onCrash: 'fork'` the session continues under the id of the fork. */
  follow(fork: string): void {
    this.#current?.relisten(this.#sessionId, fork);
    this.#sessionId = fork;
    const { sessionStore, env } = this.#options;
    this.#store = sessionStore && new StoreMirror(sessionStore, fork, { ...process.env, ...env });
  }
}
