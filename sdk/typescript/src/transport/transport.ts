import type { WorkerExit } from '../errors.js';

/** Receives what a transport reads. */
export interface TransportReceiver {
  /** Lines without their newlines, as many as arrived together. Empty ones are passed over. */
  onLines(lines: readonly string[]): void;
  /** A line that was longer than the transport reads. */
  onTooLongLine(bytes: number): void;
  /** Text from standard error, as it comes. */
  onStderr(text: string): void;
  /** The other side is gone; nothing follows. `error` is set when it could not be started. */
  onExit(exit: WorkerExit, error?: Error): void;
}

/** What is started: a program, its arguments and its surroundings. */
export interface LaunchPlan {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * A connection to one worker or hub that carries JSON lines both ways. The SDK starts processes itself; a host that
 * reaches workers in another way implements this interface and passes it as the `transport` option.
 */
export interface Transport {
  /** The end of what the worker wrote to standard error, for errors at its start. */
  readonly stderrTail?: string;
  /** True once the worker has closed its output. */
  readonly hasClosedOutput?: boolean;
  /** Starts the other side. Called once, before everything else. */
  open(receiver: TransportReceiver): void;
  /** Sends a line. Resolves when the other side has room for more. */
  write(line: string): Promise<void>;
  /** Stops and restarts reading; the other side then waits. */
  pause(): void;
  resume(): void;
  /** Says that nothing more will be written. */
  end(): void;
  /** Ends the other side: politely, or at once. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
  /** Whether the connection keeps the event loop alive. */
  setRef(keepAlive: boolean): void;
  readonly pid: number | undefined;
}

/** Makes the transport of a worker. */
export type TransportFactory = (plan: LaunchPlan) => Transport;
