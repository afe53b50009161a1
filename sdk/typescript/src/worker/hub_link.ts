import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { ClosedError, QwenError, asError } from '../errors.js';
import type { AgentManagerOptions, ResolvedOptions, WorkerPoolOptions } from '../options.js';
import { sessionFile } from '../store.js';
import { findBinary } from '../transport/binary.js';
import type { LaunchPlan } from '../transport/transport.js';
import type { Connection, Handshake } from './connection.js';
import { PrivateDirectory, sessionArguments, workerEnvironment } from './launch.js';
import type { SessionOrigin } from './launch.js';
import { openConnection } from './link.js';
import type { Linked, SessionClaim, WorkerLink } from './link.js';
import { heartbeatPlan } from './setup.js';

/** The hub's configuration in its own words. */
function poolConfiguration(pool: WorkerPoolOptions): Record<string, unknown> {
  return {
    worker_pool: {
      // Spares have the hub's own settings, and sessions bring theirs.
      min_workers: pool.minWorkers ?? 0,
      max_workers: pool.maxWorkers,
      idle_timeout: pool.idleTimeoutSeconds,
      max_sessions_per_worker: pool.maxSessionsPerWorker,
      health_check_interval: pool.healthCheckIntervalSeconds,
    },
  };
}

/** All sessions of a manager on one `qwen hub`, which is started with the first session, and again when it died. */
export class HubLink implements WorkerLink {
  readonly #options: AgentManagerOptions;
  readonly #directory = new PrivateDirectory();
  #hub: Promise<Linked> | undefined;
  #ping: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: AgentManagerOptions) {
    this.#options = options;
  }

  async connect(claim: SessionClaim): Promise<Linked> {
    const { options, sessionId, origin, setup, listener } = claim;
    await this.#prepare(options, sessionId, origin);
    const { connection, handshake } = await this.#running();
    connection.listen(sessionId, listener);
    try {
      const { settingsProfile } = options;
      const isProfileObject = typeof settingsProfile === 'object';
      const workerOptions = isProfileObject ? { ...options, settingsProfile: undefined } : options;
      const opening = {
        cwd: options.cwd ?? process.cwd(),
        args: sessionArguments(workerOptions, setup.directory),
        env: Object.fromEntries(Object.entries(options.env ?? {}).map(([name, value]) => [name, value ?? null])),
        settings_profile: isProfileObject ? settingsProfile : undefined,
      };
      await connection.request('open', opening, { sessionId });
      await connection.request('initialize', setup.initialize(undefined), { sessionId });
    } catch (error) {
      connection.unlisten(sessionId);
      throw error;
    }
    return { connection, handshake: { ...handshake, sessionId } };
  }

  async release(connection: Connection, sessionId: string, timeoutMs: number): Promise<void> {
    try {
      await connection.request('close', {}, { sessionId, timeoutMs });
    } catch {
      // A hub that does not answer is ended with the manager; one that is gone has no session left.
    }
    connection.unlisten(sessionId);
  }

  promptFields({ onCrash }: ResolvedOptions): Record<string, unknown> {
    return onCrash === 'retry' || onCrash === 'fork' ? { retry: 'safe' } : {};
  }

  async close(timeoutMs: number): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#ping);
    const hub = await this.#hub?.catch(() => undefined);
    await hub?.connection.close(timeoutMs);
    this.#directory.remove();
  }

  /** The hub takes up sessions by their ids; what it cannot do for them is done here. */
  async #prepare(options: ResolvedOptions, sessionId: string, origin: SessionOrigin): Promise<void> {
    if (origin.kind === 'new') return;
    const env = workerEnvironment(options);
    const source = origin.kind === 'fork' ? origin.of : sessionId;
    if (!existsSync(sessionFile(env, source))) {
      throw new QwenError('unknown_session', `There is no session '${source}'`);
    }
    if (origin.kind === 'resume' && origin.at === undefined) return;
    const binary = findBinary(options.binaryPath, env);
    const point = origin.at === undefined ? [] : ['--at', origin.at];
    if (origin.kind === 'resume') throw new QwenError('not_supported', 'A pool resumes sessions at their end; fork the session at the point instead');
    try {
      await promisify(execFile)(binary, ['sessions', 'fork', source, ...point, '--session-id', sessionId], { env, cwd: options.cwd });
    } catch (error) {
      throw new QwenError('fork_failed', `The session '${source}' cannot be forked: ${asError(error).message}`, { cause: error });
    }
  }

  async #running(): Promise<Linked> {
    if (this.#isClosed) throw new ClosedError('The worker pool');
    const current = await this.#hub?.catch(() => undefined);
    if (current?.connection.isOpen) return current;
    // Sessions that ask at the same time share one start.
    this.#hub = this.#starting ??= this.#start().finally(() => { this.#starting = undefined; });
    return this.#hub;
  }

  #starting: Promise<Linked> | undefined;

  async #start(): Promise<Linked> {
    const connection = openConnection(this.#plan(), this.#options, { hub: true });
    const handshake: Handshake = await connection.open();
    const plan = heartbeatPlan(this.#options.heartbeat);
    clearInterval(this.#ping);
    if (plan !== undefined) {
      // A hub without work says nothing by itself; its answer is the sign of life.
      const ask = { type: 'control_request', request_id: 'sdk-ping', subtype: 'hub/status' };
      this.#ping = setInterval(() => { connection.post(ask); }, plan.intervalMs);
      this.#ping.unref();
    }
    return { connection, handshake };
  }

  #plan(): LaunchPlan {
    const options = this.#options;
    const env = workerEnvironment({ ...options, settingsProfile: undefined });
    const format = options.includePartialMessages === false ? 'stream-json' : 'stream-chunk-json';
    const config = this.#directory.write('hub.json', poolConfiguration(options.workerPool ?? {}));
    return {
      command: findBinary(options.binaryPath, env),
      args: ['hub', '--dialect', 'qwen', '--output-format', format, '--config', config],
      cwd: options.cwd,
      env,
    };
  }
}
