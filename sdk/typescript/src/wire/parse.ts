import { STREAM_TYPES } from './generated.js';
import type { UnknownEvent, WireEvent } from './messages.js';

const KNOWN: ReadonlySet<string> = new Set(STREAM_TYPES);
const SHOWN_CHARACTERS = 64 * 1024;

/** The line as an event, or what is known of one that this version cannot read. */
export type ParsedLine = WireEvent | UnknownEvent;

export function isUnknown(line: ParsedLine): line is UnknownEvent {
  return (line as { type?: unknown }).type === 'unknown';
}

/** Parses one line of a worker. It never throws: what cannot be read is an `UnknownEvent`. */
export function parseLine(line: string): ParsedLine {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return { type: 'unknown', reason: 'malformed', data: line.slice(0, SHOWN_CHARACTERS) };
  }
  return classify(value);
}

/** Judges a parsed line by its shape. */
export function classify(value: unknown): ParsedLine {
  if (typeof value === 'object' && value !== null) {
    const { type, object, error, choices } = value as { type?: unknown; object?: unknown; error?: unknown; choices?: unknown };
    // The schema lets the pieces of a completion leave out `object`.
    const word = type ?? object ?? (choices === undefined ? undefined : 'chat.completion.chunk');
    if (typeof word === 'string' ? KNOWN.has(word) && fits(word, value) : isErrorObject(error)) return value as WireEvent;
  }
  return { type: 'unknown', reason: 'unknown_type', data: value };
}

function isErrorObject(error: unknown): boolean {
  return typeof error === 'object' && error !== null && typeof (error as { message?: unknown }).message === 'string';
}

/** Whether the fields that the SDK reads without a look have the right kind. */
function fits(word: string, value: object): boolean {
  const fields = value as Record<string, unknown>;
  switch (word) {
    case 'chat.completion':
    case 'chat.completion.chunk':
      return Array.isArray(fields.choices) && fields.choices.every((choice) => fitsChoice(choice));
    case 'control_request':
    case 'control_cancel_request':
      return typeof fields.request_id === 'string';
    case 'control_response':
      return typeof fields.response === 'object' && fields.response !== null;
    case 'result/command':
      return typeof fields.result === 'object' && fields.result !== null;
    case 'result/command_hint':
      return Array.isArray(fields.suggestions);
    default:
      return true;
  }
}

function fitsChoice(choice: unknown): boolean {
  if (typeof choice !== 'object' || choice === null) return false;
  const { delta, message } = choice as { delta?: unknown; message?: unknown };
  const body = delta ?? message;
  if (typeof body !== 'object' || body === null) return false;
  const { tool_calls: calls } = body as { tool_calls?: unknown };
  return calls === undefined || calls === null || (Array.isArray(calls) && calls.every((call) => isCall(call)));
}

function isCall(call: unknown): boolean {
  if (typeof call !== 'object' || call === null) return false;
  const { function: body } = call as { function?: unknown };
  return typeof body === 'object' && body !== null;
}
