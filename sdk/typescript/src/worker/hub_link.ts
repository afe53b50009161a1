import { existsSync } from 'node:fs';
import { ClosedError, ProtocolError, QwenError, RequestError, WorkerExitedError } from '../errors.js';
import type { AgentManagerOptions, HeartbeatOptions, ResolvedOptions, WorkerPoolOptions } from '../options.js';
import { sessionFile } from '../store.js';
import { findBinary } from '../transport/binary.js';
import { directoryProblem } from '../transport/process.js';
import type { LaunchPlan } from '../transport/transport.js';
import type { Connection, Handshake } from './connection.js';
import { PrivateDirectory, sessionArguments, workerEnvironment } from './launch.js';
import type { SessionOrigin } from './launch.js';
import { openConnection } from './link.js';
import type { Linked, SessionClaim } from './link.js';

/** Without a pool that was asked for, every session of a manager may have its own worker at once, up to this many. */
const MAX_OWN_WORKERS = 256;

/** The hub's configuration in its own words. */
function poolConfiguration(pool: WorkerPoolOptions | undefined, heartbeat: HeartbeatOptions | false | undefined): Record<string, unknown> {
  const beats = heartbeat === false ? undefined : heartbeat;
  const interval = beats?.intervalMs === undefined ? undefined : beats.intervalMs / 1000;
  return {
    worker_pool: {
      heartbeat_interval: interval,
      heartbeat_timeout: interval === undefined ? undefined : interval * ((beats?.maxMissed ?? 3) + 1),
      // Spares have the hub's own settings, and sessions bring theirs.
      min_workers: pool?.minWorkers ?? 0,
      max_workers: pool?.maxWorkers ?? (pool === undefined ? MAX_OWN_WORKERS : undefined),
      idle_timeout: pool?.idleTimeoutSeconds,
      max_sessions_per_worker: pool?.maxSessionsPerWorker,
      health_check_interval: pool?.healthCheckIntervalSeconds,
    },
  };
}

/** All sessions of a manager on one `qwen hub`, which is started with the first session. The hub alone restarts workers. */
export class HubLink {
  readonly #options: AgentManagerOptions;
  readonly #directory = new PrivateDirectory();
  #hub: { connection: Connection; greeting: Promise<Handshake> } | undefined;
  #isClosed = false;

  constructor(options: AgentManagerOptions) {
    this.#options = options;
  }

  async connect({ options, sessionId, origin, setup, listener, signal }: SessionClaim): Promise<Linked> {
    const opening = this.#opening(options, sessionId, origin, setup);
    const { connection, greeting } = this.#running();
    if (connection.isListening(sessionId)) throw new QwenError('duplicate_session', `The session '${sessionId}' is open already`);
    connection.listen(sessionId, listener);
    const onAbort = (): void => { connection.unlisten(sessionId); };
    signal.addEventListener('abort', onAbort);
    try {
      // The requests wait in the pipe until the hub reads them; nothing is believed before its greeting.
      const timeoutMs = options.timeouts?.start ?? 10_000;
      const opened = connection.request('open', opening, { sessionId, timeoutMs });
      const initialized = connection.request('initialize', setup.initialize(), { sessionId, timeoutMs });
      for (const each of [opened, initialized]) each.catch(() => undefined);
      const handshake = await greeting;
      await opened;
      await initialized;
      signal.throwIfAborted();
      return { connection, handshake: { ...handshake, sessionId } };
    } catch (error) {
      await this.#leave(connection, sessionId, options.timeouts?.close ?? 5000);
      throw startError(error);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #opening(options: ResolvedOptions, sessionId: string, origin: SessionOrigin, setup: SessionClaim['setup']): Record<string, unknown> {
    const { settingsProfile, cwd = process.cwd(), onCrash } = options;
    const problem = directoryProblem(cwd);
    if (problem !== undefined) throw new ProtocolError('cannot_start', `The session cannot be opened: ${problem}`);
    const isProfileObject = typeof settingsProfile === 'object';
    const args = sessionArguments(isProfileObject ? { ...options, settingsProfile: undefined } : options, setup.directory);
    const source = origin.kind === 'fork' ? origin.of : sessionId;
    if (origin.kind !== 'new') {
      // A hub begins a session that it does not find, so a wrong id is noticed here.
      if (!existsSync(sessionFile(workerEnvironment(options), source))) throw new QwenError('unknown_session', `There is no session '${source}'`);
      if (origin.at !== undefined) args.push(`--resume-session-at=${origin.at}`);
      if (origin.kind === 'resume' && origin.at !== undefined) throw new QwenError('not_supported', 'A session is resumed at its end; fork it at the point instead');
    }
    return {
      cwd,
      args,
      env: Object.fromEntries(Object.entries(options.env ?? {}).map(([name, value]) => [name, value ?? null])),
      settings_profile: isProfileObject ? settingsProfile : undefined,
      fork_from: origin.kind === 'fork' ? origin.of : undefined,
      on_crash: onCrash,
    };
  }

  async release(connection: Connection, sessionId: string, timeoutMs: number): Promise<void> {
    try {
      await connection.request('close', {}, { sessionId, timeoutMs });
    } catch {
      // A hub that does not answer is ended with the manager; one that is gone has no session left.
    }
    await this.#leave(connection, sessionId, timeoutMs);
  }

  /** A session is over. Without a pool that was asked for, the hub ends with its last session. */
  async #leave(connection: Connection, sessionId: string, timeoutMs: number): Promise<void> {
    connection.unlisten(sessionId);
    if (this.#options.workerPool === undefined && !connection.isUsed) await connection.close(timeoutMs);
  }

  async close(timeoutMs: number): Promise<void> {
    this.#isClosed = true;
    await this.#hub?.connection.close(timeoutMs);
    this.#directory.remove();
  }

  /** The hub that runs, or a new one for sessions that are opened after one was lost. */
  #running(): { connection: Connection; greeting: Promise<Handshake> } {
    if (this.#isClosed) throw new ClosedError('The agent manager');
    if (this.#hub?.connection.isOpen) return this.#hub;
    const connection = openConnection(this.#plan(), this.#options, { hub: true });
    const greeting = connection.open();
    greeting.catch(() => undefined);
    this.#hub = { connection, greeting };
    return this.#hub;
  }

  #plan(): LaunchPlan {
    const options = this.#options;
    const env = workerEnvironment({ ...options, settingsProfile: undefined });
    const format = options.includePartialMessages === false ? 'stream-json' : 'stream-chunk-json';
    const config = this.#directory.write('hub.json', poolConfiguration(options.workerPool, options.heartbeat));
    return {
      command: findBinary(options.binaryPath, env),
      args: ['hub', '--dialect', 'qwen', '--output-format', format, '--config', config],
      cwd: options.cwd,
      env,
    };
  }
}

/** A worker that did not start, in its own words. */
function startError(error: unknown): unknown {
  if (!(error instanceof RequestError) || !['worker_lost', 'worker_not_started', 'worker_circuit_open'].includes(error.code)) return error;
  const { exit_code: exitCode = null, stderr = '' } = error.worker ?? {};
  return new WorkerExitedError('The worker did not start', { exitCode, signal: null, stderrTail: stderr }, { message: error.reason, type: 'internal_error', code: error.code, param: null });
}
