import { sessionLogger } from '../logging.js';
import type { ResolvedOptions } from '../options.js';
import { ProcessTransport } from '../transport/process.js';
import type { LaunchPlan } from '../transport/transport.js';
import { Connection } from './connection.js';
import type { Handshake, SessionListener } from './connection.js';
import { launchPlan } from './launch.js';
import type { SessionOrigin } from './launch.js';
import { heartbeatPlan } from './setup.js';
import type { Setup } from './setup.js';

export interface Linked {
  readonly connection: Connection;
  readonly handshake: Handshake;
}

/** What a session asks of whoever starts workers. */
export interface SessionClaim {
  readonly options: ResolvedOptions;
  readonly sessionId: string;
  readonly origin: SessionOrigin;
  readonly setup: Setup;
  readonly listener: SessionListener;
  /** Aborted when the session is closed before it is connected. */
  readonly signal: AbortSignal;
}

/** How sessions reach their workers: a process each, or a hub for all. */
export interface WorkerLink {
  connect(claim: SessionClaim): Promise<Linked>;
  /** The session no longer needs its worker. Returns within the time-out. */
  release(connection: Connection, sessionId: string, timeoutMs: number): Promise<void>;
  /** Top-level keys that every prompt carries. */
  promptFields(options: ResolvedOptions): Record<string, unknown>;
  /** The manager is closed, and all its sessions are. */
  close(timeoutMs: number): Promise<void>;
}

/** Opens a connection to what the plan starts. */
export function openConnection(plan: LaunchPlan, options: ResolvedOptions, fields: Record<string, unknown> = {}): Connection {
  const transport = (options.transport ?? ((each) => new ProcessTransport(each)))(plan);
  return new Connection(transport, {
    logger: sessionLogger(options.logger, fields),
    stderr: options.stderr,
    startTimeoutMs: options.timeouts?.start ?? 10_000,
    requestTimeoutMs: options.timeouts?.request ?? 60_000,
    heartbeat: heartbeatPlan(options.heartbeat),
  });
}

/** One worker process for each session. */
export class ProcessLink implements WorkerLink {
  async connect({ options, sessionId, origin, setup, listener, signal }: SessionClaim): Promise<Linked> {
    const plan = launchPlan(options, sessionId, origin, setup.directory);
    const connection = openConnection(plan, options, { session_id: sessionId });
    connection.listen(undefined, listener);
    const onAbort = (): void => { connection.kill(); };
    signal.addEventListener('abort', onAbort);
    try {
      const opened = connection.open();
      // The request waits in the pipe until the worker reads it; nothing is believed before the handshake.
      const initialized = connection.request('initialize', setup.initialize(heartbeatPlan(options.heartbeat)?.intervalMs), { sessionId });
      initialized.catch(() => undefined);
      const handshake = await opened;
      await initialized;
      return { connection, handshake };
    } catch (error) {
      connection.kill();
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  release(connection: Connection, _sessionId: string, timeoutMs: number): Promise<void> {
    return connection.close(timeoutMs, { type: 'control_request', request_id: 'sdk-end', subtype: 'end_session' });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  promptFields(): Record<string, unknown> {
    return {};
  }
}
