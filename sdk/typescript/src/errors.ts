import type { ErrorBody } from './wire/generated.js';
import type { TurnResult } from './wire/messages.js';

/** How a worker process ended. */
export interface WorkerExit {
  /** The exit code; null when a signal ended the process. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** The last lines that the process wrote to standard error, at most 16 KiB. */
  readonly stderrTail: string;
}

/** The base class of every error that the SDK throws. `code` is stable and meant for programs. */
export class QwenError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** No `qwen` program was found. `searched` lists the places in the order in which they were tried. */
export class BinaryNotFoundError extends QwenError {
  readonly searched: readonly string[];

  constructor(searched: readonly string[]) {
    super(
      'binary_not_found',
      `The qwen program was not found. Searched: ${searched.join('; ')}. ` +
        'Install @qwen-agent/sdk with its optional dependencies, put qwen on PATH, set QWEN_BIN, or pass binaryPath.',
    );
    this.searched = searched;
  }
}

/** The program that was started does not speak the protocol, or speaks another version of it. */
export class ProtocolError extends QwenError {
  readonly exit: WorkerExit | undefined;

  constructor(code: string, message: string, exit?: WorkerExit) {
    super(code, exit ? describeExit(message, exit) : message);
    this.exit = exit;
  }
}

/** The worker ended before its work was done. */
export class WorkerExitedError extends QwenError {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stderrTail: string;
  /** The result of the last turn of the session that ended normally. */
  lastResult: TurnResult | undefined;
  /** The error object that the worker wrote before it ended, if it wrote one. */
  readonly fatal: ErrorBody | undefined;

  constructor(message: string, exit: WorkerExit, fatal?: ErrorBody) {
    // What the worker says of its end usually stands on standard error as well.
    const isRepeated = fatal !== undefined && exit.stderrTail.includes(fatal.message);
    const shown = isRepeated ? { ...exit, stderrTail: '' } : exit;
    super(fatal?.code ?? 'worker_exited', describeExit(fatal ? `${message}: ${fatal.message}` : message, shown));
    this.exitCode = exit.exitCode;
    this.signal = exit.signal;
    this.stderrTail = exit.stderrTail;
    this.fatal = fatal;
  }
}

/** Thrown by a tool to report a failure to the model, which receives the message of this error and of no other. */
export class ToolError extends QwenError {
  constructor(message: string, options?: ErrorOptions) {
    super('tool_failed', message, options);
  }
}

/** The session, manager or transport was closed. */
export class ClosedError extends QwenError {
  constructor(what: string, options?: ErrorOptions) {
    super('closed', `${what} is closed`, options);
  }
}

/** Something took longer than its time-out. `timeout` names the option that sets it. */
export class TimeoutError extends QwenError {
  readonly timeout: string;

  constructor(timeout: string, message: string) {
    super('timeout', `${message} (option timeouts.${timeout})`);
    this.timeout = timeout;
  }
}

/** An AbortSignal ended the operation. `result` is the terminal record of the turn, when it arrived. */
export class AbortError extends QwenError {
  readonly result: TurnResult | undefined;

  constructor(reason: unknown, result?: TurnResult) {
    super('aborted', 'The operation was aborted', { cause: reason });
    this.name = 'AbortError';
    this.result = result;
  }
}

/** The worker answered a control request with an error. */
export class RequestError extends QwenError {
  readonly retryable: boolean;

  /** The message without the name of the request. @internal */
  readonly reason: string;
  /** How the worker ended, where that is the cause. */
  readonly worker: { readonly reason?: string; readonly exit_code?: number | null; readonly stderr?: string } | undefined;

  constructor(subtype: string, error: { code?: string | null; message: string; retryable?: boolean; worker?: RequestError['worker'] }) {
    super(error.code ?? 'request_failed', `${subtype}: ${error.message}`);
    this.retryable = error.retryable ?? false;
    this.reason = error.message;
    this.worker = error.worker;
  }
}

/** The turn ended without a result that fits the requested schema. */
export class StructuredOutputError extends QwenError {
  readonly result: TurnResult;

  constructor(message: string, result: TurnResult, options?: ErrorOptions) {
    super('structured_output', message, options);
    this.result = result;
  }
}

function describeExit(message: string, exit: WorkerExit): string {
  const how = exit.signal ? `signal ${exit.signal}` : `exit code ${String(exit.exitCode)}`;
  const tail = exit.stderrTail.trim();
  return `${message} (${how})${tail ? `\n${tail}` : ''}`;
}

/** An error as fields of a log entry. */
export function describeError(value: unknown): { error: string; stack: string | undefined } {
  const { message, stack } = asError(value);
  return { error: message, stack };
}

/** The error that an unknown thrown value stands for. */
export function asError(value: unknown): Error {
  return value instanceof Error ? value : new Error(String(value));
}
