/** Receives structured log entries: a message and its fields. Any logger with these four methods fits. */
export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

type Level = keyof Logger;
const LEVELS: readonly Level[] = ['debug', 'info', 'warn', 'error'];

let isVerbose = false;

/** Writes one JSON object a line to standard error for everything that the SDK does, in all sessions. */
export function enableVerboseLogging(enabled = true): void {
  isVerbose = enabled;
}

function writeJson(level: Level, message: string, fields: Record<string, unknown> | undefined): void {
  process.stderr.write(`${JSON.stringify({ timestamp: new Date().toISOString(), level, event: message, ...fields })}\n`);
}

/** A logger that adds fields to each entry and passes it to the host's logger and, when verbose, to standard error. */
export function sessionLogger(target: Logger | undefined, fields: Record<string, unknown>): Logger {
  const entries = LEVELS.map((level): [Level, Logger[Level]] => [
    level,
    (message, extra) => {
      // Errors of a host without a logger are not lost.
      const isPrinted = isVerbose || (target === undefined && level === 'error');
      if (target === undefined && !isPrinted) return;
      const all = { ...fields, ...extra };
      if (isPrinted) writeJson(level, message, all);
      try {
        target?.[level](message, all);
      } catch {
        // A logger that fails costs its entry and not the session.
      }
    },
  ]);
  return Object.fromEntries(entries) as unknown as Logger;
}
