import { sessionLogger } from '../logging.js';
import type { ResolvedOptions } from '../options.js';
import { ProcessTransport } from '../transport/process.js';
import type { LaunchPlan } from '../transport/transport.js';
import { Connection } from './connection.js';
import type { Handshake, SessionListener } from './connection.js';
import type { SessionOrigin } from './launch.js';
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

/** Opens a connection to what the plan starts. */
export function openConnection(plan: LaunchPlan, options: ResolvedOptions, fields: Record<string, unknown> = {}): Connection {
  const transport = (options.transport ?? ((each) => new ProcessTransport(each)))(plan);
  return new Connection(transport, {
    logger: sessionLogger(options.logger, fields),
    stderr: options.stderr,
    startTimeoutMs: options.timeouts?.start ?? 10_000,
    requestTimeoutMs: options.timeouts?.request ?? 60_000,
  });
}
