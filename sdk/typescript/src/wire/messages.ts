import type {
  AgentTokens,
  CommandLine,
  ConfirmationRecord,
  ErrorBody,
  Metrics,
  ModelTokens,
  PermissionDenial,
  ResultDisplay,
  StreamChunkLine,
  StreamLine,
  TokenUsage,
} from './generated.js';

/** A line of the stream as the worker wrote it. Fields that this version does not know are kept. */
export type WireEvent = StreamLine | StreamChunkLine;

/** A call that the model made. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** The parsed arguments; empty when `argumentsText` is not a JSON object. */
  readonly arguments: Record<string, unknown>;
  /** The arguments as the model wrote them. */
  readonly argumentsText: string;
}

/** How a turn ended, in the words of the protocol. */
export type TurnStatus =
  | 'done'
  | 'error'
  | 'cancelled'
  | 'interrupted'
  | 'max_turns'
  | 'max_tool_calls'
  | 'max_wall_time'
  | 'max_tokens'
  | 'budget'
  // Statuses of later protocol versions; `& {}` keeps the known words in editors.
  | (string & {});

/** The end of a turn: what it said, what it cost, what it was not allowed to do. */
export interface TurnResult<T = unknown> {
  readonly sessionId: string;
  readonly promptId: string;
  readonly status: TurnStatus;
  /** True when the turn completed, whether or not calls were denied in it. */
  readonly done: boolean;
  /** True when the turn completed and no call was denied. */
  readonly ok: boolean;
  /** True when the status is not `done`. */
  readonly isError: boolean;
  /** The last message of the assistant, as far as it came. */
  readonly text: string;
  /** The same as `text`. */
  readonly summary: string;
  /** The calls of the main agent, in order. */
  readonly toolCalls: readonly ToolCall[];
  /** The validated object when the turn had an output schema. */
  readonly structuredOutput: T | undefined;
  readonly error: ErrorBody | undefined;
  /** Tokens of the whole turn, sub-agents included. */
  readonly usage: TokenUsage | undefined;
  readonly usageByModel: Readonly<Record<string, ModelTokens>>;
  /** The part of the turn that sub-agents spent, by name. */
  readonly usageByAgent: Readonly<Record<string, AgentTokens>>;
  /** US dollars, when the price of every model that was used is known. */
  readonly costUsd: number | undefined;
  readonly permissionDenials: readonly PermissionDenial[];
  readonly controlErrors: readonly ErrorBody[];
  readonly durationMs: number;
  readonly modelCallCount: number;
  readonly toolCallCount: number;
  readonly raw: WireEvent;
}

/** A piece of the assistant's text. */
export interface TextMessage {
  readonly type: 'text';
  readonly text: string;
  readonly raw: WireEvent;
}

/** A piece of a tool call, while the model writes it. */
export interface ToolCallDeltaMessage {
  readonly type: 'tool_call_delta';
  readonly index: number;
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly argumentsText: string;
  readonly raw: WireEvent;
}

/** A message of the assistant that is complete. */
export interface AssistantMessageEnd {
  readonly type: 'assistant';
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: string;
  readonly usage: TokenUsage | undefined;
  readonly model: string;
  readonly raw: WireEvent;
}

/** What the model thinks before it answers. */
export interface ThoughtMessage {
  readonly type: 'thought';
  readonly subject: string;
  readonly description: string;
  /** The call that started the sub-agent which thinks this. */
  readonly parentToolCallId: string | undefined;
  readonly raw: WireEvent;
}

/** The state of a tool call: pending, confirming, executing, success, error or canceled. */
export interface ToolStatusMessage {
  readonly type: 'tool_status';
  readonly toolCallId: string;
  readonly toolName: string | undefined;
  readonly status: string;
  readonly display: ResultDisplay | undefined;
  readonly confirmation: ConfirmationRecord | undefined;
  readonly parentToolCallId: string | undefined;
  readonly raw: WireEvent;
}

/** Output of a tool, a console log, or the end of a run. */
export interface TerminalMessage {
  readonly type: 'terminal';
  readonly channel: string;
  readonly source: string;
  readonly text: string;
  readonly toolCallId: string | undefined;
  readonly parentToolCallId: string | undefined;
  readonly exitCode: number | undefined;
  readonly raw: WireEvent;
}

/** A notice about the session, such as `ChatCompressed`, `Retry` or `Steered`. */
export interface SessionEventMessage {
  readonly type: 'session_event';
  readonly event: string;
  readonly message: string;
  readonly metrics: Metrics | undefined;
  readonly value: unknown;
  readonly raw: WireEvent;
}

/** The outcome of a slash command, an `@` reference or `?`. */
export interface CommandMessage {
  readonly type: 'command';
  readonly command: CommandLine['command'];
  readonly outcome: CommandLine['result'];
  readonly raw: WireEvent;
}

/** Sign of life of the worker. */
export interface HeartbeatMessage {
  readonly type: 'heartbeat';
  readonly activity: string | undefined;
  readonly tool: string | undefined;
  readonly raw: WireEvent;
}

/** The answer to a cancel request. */
export interface CancelMessage {
  readonly type: 'cancel';
  readonly status: string;
  readonly raw: WireEvent;
}

/** Suggestions for what the user is typing. */
export interface HintMessage {
  readonly type: 'hint';
  readonly status: string;
  readonly suggestions: ReadonlyArray<{ label: string; value: string; description?: string | null }>;
  readonly raw: WireEvent;
}

/** An error outside a terminal record, for example about a line that the worker could not read. */
export interface ErrorMessage {
  readonly type: 'error';
  readonly error: ErrorBody;
  readonly raw: WireEvent;
}

/** The terminal record of a turn: always the last message of its turn, and there is exactly one. */
export interface ResultMessage {
  readonly type: 'result';
  readonly result: TurnResult;
  readonly raw: WireEvent;
}

/** A line that this version does not know, or that is not JSON. Parsing never throws. */
export interface UnknownEvent {
  readonly type: 'unknown';
  readonly reason: 'unknown_type' | 'malformed' | 'too_long';
  /** The parsed line, or its text where it could not be parsed (the first 64 KiB). */
  readonly data: unknown;
}

/** What a stream yields. */
export type AgentMessage =
  | TextMessage
  | ToolCallDeltaMessage
  | AssistantMessageEnd
  | ThoughtMessage
  | ToolStatusMessage
  | TerminalMessage
  | SessionEventMessage
  | CommandMessage
  | HeartbeatMessage
  | CancelMessage
  | HintMessage
  | ErrorMessage
  | ResultMessage
  | UnknownEvent;

/** The messages of a stream, under the name that the specification uses. */
export type AgentStreamChunk = AgentMessage;
