import { AbortError, ClosedError } from './errors.js';
import { newId } from './ids.js';
import type { InferSchema, SchemaInput } from './control/schema.js';
import { mergeOptions } from './options.js';
import type { AgentManagerOptions, SessionOptions, TurnOptions } from './options.js';
import { checkOptions } from './options_check.js';
import type { PromptInput } from './prompt.js';
import { replay } from './replay.js';
import type { ReplayOptions } from './replay.js';
import { Session } from './session.js';
import { HubLink } from './worker/hub_link.js';
import type { SessionOrigin } from './worker/launch.js';
import type { AgentMessage, TurnResult } from './wire/messages.js';

/** The options of `run`: those of a session and those of its one turn. */
export type RunOptions<S = undefined> = SessionOptions & TurnOptions<S>;

/** Makes sessions that share their options. */
export class AgentManager {
  readonly #options: AgentManagerOptions;
  readonly #link: HubLink;
  readonly #sessions = new Set<Session>();
  #isClosed = false;

  /** @internal Use `createAgentManager`. */
  constructor(options: AgentManagerOptions, link: HubLink) {
    this.#options = options;
    this.#link = link;
    options.signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  readonly #onAbort = (): void => {
    for (const session of [...this.#sessions]) session.abort(this.#options.signal?.reason);
  };

  /** Starts a worker and a session in it. `sessionId` names the new session. */
  createSession(options: SessionOptions & { readonly sessionId?: string } = {}): Promise<Session> {
    const { sessionId = newId(), ...rest } = options;
    return this.#open(sessionId, { kind: 'new' }, rest);
  }

  /** Continues a session, from `at` (a prompt or checkpoint) if given. An unknown id is an error. */
  resumeSession(sessionId: string, options: SessionOptions & { readonly at?: string } = {}): Promise<Session> {
    const { at, ...rest } = options;
    return this.#open(sessionId, { kind: 'resume', at }, rest);
  }

  /** A new session with the history of another, which stays as it is and may be running. */
  forkSession(from: string | Session, options: SessionOptions & { readonly at?: string; readonly sessionId?: string } = {}): Promise<Session> {
    const { at, sessionId = newId(), ...rest } = options;
    const of = typeof from === 'string' ? from : from.id;
    return this.#open(sessionId, { kind: 'fork', of, at }, rest);
  }

  /** The messages of a recorded session, turn after turn, without a model. An unknown id is an error. */
  replaySession(sessionId: string, options: ReplayOptions = {}): AsyncIterable<AgentMessage> {
    return replay(this.#options, sessionId, options);
  }

  /** Runs one prompt in a new session. */
  async run<S extends SchemaInput | undefined = undefined>(
    prompt: PromptInput,
    options: RunOptions<S> = {},
  ): Promise<TurnResult<S extends SchemaInput ? InferSchema<S> : unknown>> {
    const session = await this.createSession(options);
    try {
      return await session.run(prompt, options);
    } finally {
      await session.close();
    }
  }

  /** Closes every session. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    await Promise.all([...this.#sessions].map((session) => session.close()));
    await this.#link.close(this.#options.timeouts?.close ?? 5000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #open(sessionId: string, origin: SessionOrigin, options: SessionOptions): Promise<Session> {
    if (this.#isClosed) throw new ClosedError('The agent manager');
    checkOptions(options);
    const merged = mergeOptions(this.#options, options);
    if (merged.signal?.aborted) throw new AbortError(merged.signal.reason);
    return new Session(this.#link, merged, sessionId, origin, this.#sessions).open(options.signal);
  }
}

/** Makes an agent manager. Nothing is started before the first session. */
export function createAgentManager(options: AgentManagerOptions = {}): AgentManager {
  checkOptions(options);
  return new AgentManager(options, new HubLink(options));
}
