// Generated from schemas/ by sdk/codegen/typescript.mjs. Do not edit: run `make bless-sdk-typescript`.

/** The `type` (or `object`) of every line that a worker writes. */
export const STREAM_TYPES = [
  'chat.completion',
  'chat.completion.chunk',
  'control_cancel_request',
  'control_request',
  'control_response',
  'result/cancel',
  'result/command',
  'result/command_hint',
  'result/heartbeat',
  'x-qwen-session-event',
  'x-qwen-terminal',
  'x-qwen-thought',
  'x-qwen-tool-display'
] as const;

/** An escape sequence that was removed. */
export interface AnsiCode {
  /** The sequence as it was. */
  code: string;
  /** Where it stood, in Unicode scalar values of the record's text. */
  offset: number;
}

/** What the model said. */
export interface AssistantMessage {
  /** The text; absent when there are only calls. */
  content?: string | null;
  /** `assistant` */
  role: AssistantRole;
  /** The calls. */
  tool_calls?: WireToolCall[] | null;
}

/** Who writes. */
export type AssistantRole = "assistant";

/** The end of a cancel request. */
export interface CancelLine {
  /** What happened, in a sentence. */
  message?: string;
  /** The turn or queued prompt that was meant. */
  prompt_id?: string | null;
  /** The reason that the request gave. */
  reason?: string;
  /** The session. */
  session_id?: string | null;
  /** `ok`, or `noop` where there was nothing to cancel. */
  status: string;
  /** `result/cancel` */
  type: CancelType;
}

/** What the end of a cancel request says it is. */
export type CancelType = "result/cancel";

/** A `chat.completion` line: the handshake, an assistant message, an error, or the terminal record of a turn. */
export interface ChatCompletion {
  /** One message; none in the handshake. */
  choices: Choice[];
  /** Seconds since the Unix epoch. */
  created: number;
  /** `chatcmpl-<session_id>` */
  id: string;
  /** The handshake's announcement, an error, or the summary of a turn. */
  metadata?: Metadata | null;
  /** The model that wrote, or that the session starts with. */
  model: string;
  /** `chat.completion` */
  object: CompletionObject;
  /** The turn; absent outside one. */
  prompt_id?: string | null;
  /** The session. */
  session_id?: string | null;
  /** Which program wrote the stream; only in the handshake. */
  system_fingerprint?: string | null;
  /** Tokens: of the message, or in the terminal record of the whole turn. */
  usage?: TokenUsage | null;
}

/** The one choice of a `chat.completion`. */
export interface Choice {
  /** `stop`, `tool_calls`, `length`, `content_filter` or `error`. */
  finish_reason: string;
  /** Always 0. */
  index: number;
  /** The message. */
  message: AssistantMessage;
}

/** The end of a command. */
export interface CommandLine {
  /** The command as it was understood. */
  command: CommandName;
  /** What the host cannot do in this run, because there is no control channel. */
  limitation?: string | null;
  /** The prompt that held the command. */
  prompt_id: string;
  /** What came of it. */
  result: CommandOutcome;
  /** The session. */
  session_id: string;
  /** `result/command` */
  type: CommandType;
}

/** A command and its arguments. */
export interface CommandName {
  /** The rest, as typed. */
  args?: string;
  /** `slash`, `at` or `help` */
  kind: string;
  /** Its name and sub-names. */
  path: string[];
}

/** What came of a command. */
export interface CommandOutcome {
  /** The words of a message, or the prompt that is submitted. */
  content?: string | null;
  /** What the dialog shows. */
  data?: unknown;
  /** The name of the dialog. */
  dialog?: string | null;
  /** How loud a message is: `info`, `warning` or `error`. */
  level?: string | null;
  /** The tool that was run. */
  tool?: ToolUse | null;
  /** `message`, `dialog`, `tool` or `submit_prompt` */
  type: string;
}

/** What the end of a command says it is. */
export type CommandType = "result/command";

/** What a message-level line says it is. */
export type CompletionObject = "chat.completion";

/** Of the completion's tokens. */
export interface CompletionTokens {
  /** Those spent on thinking. */
  reasoning_tokens: number;
}

/** What someone is asked to agree to. */
export type ConfirmationRecord = {
  /** The unified diff. */
  diff: string;
  /** The path as people know it. */
  file_name: string;
  /** The absolute path. */
  file_path: string;
  /** The text after. */
  modified: string;
  /** The text before; null when the file is new. */
  original?: string | null;
  /** Line counts. */
  stat: LineCounts;
  /** A heading. */
  title: string;
  type: "edit";
} | {
  /** The command line. */
  command: string;
  /** The programs that it starts. */
  root_command: string;
  /** A heading. */
  title: string;
  type: "exec";
} | {
  /** The server. */
  server_name: string;
  /** A heading. */
  title: string;
  /** The tool's name for people. */
  tool_display_name: string;
  /** The tool's name there. */
  tool_name: string;
  type: "mcp";
} | {
  /** What will happen. */
  prompt: string;
  /** A heading. */
  title: string;
  type: "info";
  /** Addresses that will be visited. */
  urls?: string[];
} | {
  /** The plan, in Markdown. */
  plan: string;
  /** A heading. */
  title: string;
  type: "plan";
};

/** An answer, or why there is none. */
export interface ControlAnswer {
  /** Why there is none. */
  error?: ControlError | null;
  /** The answer. */
  result?: unknown;
  /** `success` or `error` */
  subtype: string;
}

/** A question of ours that no longer matters. */
export interface ControlCancelLine {
  /** The turn under way. */
  prompt_id?: string | null;
  /** The question's id. */
  request_id: string;
  /** The session. */
  session_id?: string | null;
  /** `control_cancel_request` */
  type: ControlCancelType;
}

/** What a withdrawn question says it is. */
export type ControlCancelType = "control_cancel_request";

/** Why there is no answer. */
export interface ControlError {
  /** A stable word for programs. */
  code?: string | null;
  /** What went wrong. */
  message: string;
  /** Whether trying again may help. */
  retryable?: boolean;
}

/** Why we ask whether a call may run. */
export interface ControlMetadata {
  /** The sub-agent that asks. */
  agent_id?: string | null;
  /** The path that is out of bounds, where that is the reason. */
  blocked_path?: string | null;
  /** What a person may be shown. */
  confirmation?: ConfirmationRecord | null;
  /** Why we ask. */
  reason: string;
  /** The call. */
  tool_call_id?: string | null;
}

/** A question on the control channel. */
export interface ControlRequestLine {
  /** `hook_callback`: the host's name for its function. */
  callback_id?: string | null;
  /** `hook_callback`: what the function is told. */
  input?: unknown;
  /** `mcp_message`: the JSON-RPC message. */
  message?: unknown;
  /** `can_use_tool`: why we ask, and what a person may be shown. */
  metadata?: ControlMetadata | null;
  /** The turn; absent outside one. */
  prompt_id?: string | null;
  /** The question's id, to be repeated in the answer. */
  request_id: string;
  /** `mcp_message`: the server. */
  server_name?: string | null;
  /** The session. */
  session_id: string;
  /** `can_use_tool`, `hook_callback` or `mcp_message` */
  subtype: string;
  /** `can_use_tool`: what wants to run. */
  tool?: ToolUse | null;
  /** `hook_callback`: the call that it is about. */
  tool_use_id?: string | null;
  /** `control_request` */
  type: ControlRequestType;
}

/** What a question on the control channel says it is. */
export type ControlRequestType = "control_request";

/** An answer on the control channel, in the flat form. */
export interface ControlResponseLine {
  /** The turn under way. */
  prompt_id?: string | null;
  /** The question's id. */
  request_id: string;
  /** The answer. */
  response: ControlAnswer;
  /** The session. */
  session_id?: string | null;
  /** `control_response` */
  type: ControlResponseType;
}

/** What an answer on the control channel says it is. */
export type ControlResponseType = "control_response";

/** An error in OpenAI's form. */
export interface ErrorBody {
  /** A stable word for programs. */
  code?: string | null;
  /** What was asked, what went wrong, what to do. */
  message: string;
  /** The field that was wrong. */
  param?: string | null;
  /** Whether trying again may help. */
  retryable?: boolean;
  /** The HTTP status, where a server gave one. */
  status?: number | null;
  /** What kind of error. */
  type: string;
}

/** The line of a fatal error. */
export interface FatalError {
  /** What went wrong. */
  error: ErrorBody;
}

/** What is called, and with what. */
export interface FunctionCall {
  /** The arguments, a JSON object as text. */
  arguments: string;
  /** The tool. */
  name: string;
}

/** What kind of tool a call names. */
export type FunctionType = "function";

/** A sign of life. */
export interface HeartbeatLine {
  /** What the turn under way is doing: `thinking`, `tool`, or `waiting` for the host to run one. */
  activity?: string | null;
  /** The turn under way. */
  prompt_id?: string | null;
  /** The session. */
  session_id: string;
  /** `ok` */
  status: string;
  /** The tool that runs, or is waited for. */
  tool?: string | null;
  /** Seconds since the Unix epoch. */
  ts: number;
  /** `result/heartbeat` */
  type: HeartbeatType;
}

/** What a heartbeat says it is. */
export type HeartbeatType = "result/heartbeat";

/** Suggestions for what is being typed. */
export interface HintLine {
  /** What went wrong. */
  message?: string | null;
  /** What goes beside them. */
  metadata: HintMetadata;
  /** The request's prompt id. */
  prompt_id: string;
  /** The session. */
  session_id: string;
  /** `ok`, `loading` or `error` */
  status: string;
  /** The suggestions, best first. */
  suggestions: SuggestionItem[];
  /** `slash` or `at` */
  trigger: string;
  /** `result/command_hint` */
  type: HintType;
}

/** What goes beside suggestions. */
export interface HintMetadata {
  /** The text already names one of them exactly. */
  is_perfect_match: boolean;
}

/** What suggestions say they are. */
export type HintType = "result/command_hint";

/** Line counts of a change. */
export interface LineCounts {
  /** Lines that the model added. */
  ai_added_lines: number;
  /** Lines that the model removed. */
  ai_removed_lines: number;
  /** Lines that the user added while approving. */
  user_added_lines: number;
  /** Lines that the user removed while approving. */
  user_removed_lines: number;
}

/** What goes beside the OpenAI fields. */
export interface Metadata {
  /** What a host may rely on, by name; in the handshake. */
  capabilities?: string[] | null;
  /** Control requests of the turn that went wrong, also in its summary; only in its terminal record. */
  control_errors?: ErrorBody[];
  /** What went wrong, or which limit was reached. */
  error?: ErrorBody | null;
  /** The input format; in the handshake. */
  input_format?: string | null;
  /** The output format; in the handshake. */
  output_format?: string | null;
  /** The protocol's version; in the handshake. */
  protocol_version?: string | null;
  /** The session; in the handshake. */
  session_id?: string | null;
  /** The summary of the turn; only in its terminal record. */
  turn?: TurnSummary | null;
}

/** Numbers that go with a notice. */
export interface Metrics {
  /** The attempt that failed, from 1. */
  attempt?: number | null;
  /** Tokens after compression. */
  compressed_tokens?: number | null;
  /** How long we wait before the next attempt. */
  delay_ms?: number | null;
  /** The limit that was reached. */
  limit?: number | null;
  /** How many retries there may be. */
  max_retries?: number | null;
  /** Tokens before compression. */
  original_tokens?: number | null;
  /** The HTTP status of the failed attempt. */
  status?: number | null;
}

/** What one model spent. */
export interface ModelTokens {
  /** Of the prompt's tokens, those served from the provider's cache. */
  cached_tokens?: number | null;
  /** Calls made to it. */
  calls: number;
  /** Tokens written by it. */
  completion_tokens: number;
  /** The price in US dollars, when prices are known. */
  cost_usd?: number | null;
  /** Tokens read by it. */
  prompt_tokens: number;
  /** Of the completion's tokens, those spent on thinking. */
  reasoning_tokens?: number | null;
  /** Both together. */
  total_tokens: number;
}

/** An answer in the nested form. */
export interface NestedAnswer {
  /** Why there is none. */
  error?: string | null;
  /** The question's id. */
  request_id: string;
  /** The answer. */
  response?: unknown;
  /** `success` or `error` */
  subtype: string;
}

/** An answer on the control channel, in the nested form; whoever asked in it is answered in it. */
export interface NestedResponseLine {
  /** The turn under way. */
  prompt_id?: string | null;
  /** The answer. */
  response: NestedAnswer;
  /** The session. */
  session_id?: string | null;
  /** `control_response` */
  type: ControlResponseType;
}

/** A call that was refused. */
export interface PermissionDenial {
  /** What it wanted to do. */
  arguments: unknown;
  /** Why it was refused. */
  reason: string;
  /** The call. */
  tool_call_id: string;
  /** The tool. */
  tool_name: string;
}

/** Of the prompt's tokens. */
export interface PromptTokens {
  /** Those newly written to it. */
  cache_write_tokens?: number | null;
  /** Those served from the provider's cache. */
  cached_tokens: number;
}

/** What people are shown of a tool's work. */
export type ResultDisplay = {
  kind: "string";
  /** For filtering: `tool`. */
  log_scope?: string | null;
  /** The text. */
  text: string;
} | {
  /** The unified diff. */
  diff: string;
  /** The path as people know it. */
  file_name: string;
  kind: "file_diff";
  /** The text after. */
  modified: string;
  /** The text before; null when the file is new. */
  original?: string | null;
  /** Line counts. */
  stat: LineCounts;
} | {
  kind: "todo_list";
  /** The things. */
  todos: TodoRecord[];
} | {
  kind: "plan_summary";
  /** A line about it. */
  message: string;
  /** The plan, in Markdown. */
  plan: string;
} | {
  /** The sub-agent's name. */
  agent: string;
  /** What it was asked to do. */
  description: string;
  kind: "task_execution";
  /** What it said at the end. */
  result?: string | null;
  /** `running`, `completed`, `failed` or `cancelled` */
  status: string;
  /** Its tokens so far. */
  tokens: number;
  /** Its tool calls so far. */
  tool_calls: number;
};

/** A notice about the session. */
export interface SessionEventRecord {
  /** `Finished`, `ChatCompressed`, `MaxSessionTurns`, `USER_CANCELLED`, `MAX_TOKENS`, `Retry`, `ModelFallback`, `LoopDetected`, `ModeChanged`, `Steered` or `Custom` */
  event: string;
  /** What happened, in a sentence. */
  message?: string;
  /** Numbers that go with it. */
  metrics?: Metrics | null;
  /** The call whose sub-agent it is about. */
  parent_tool_call_id?: string | null;
  /** The turn; absent outside one. Of `Steered`, the prompt that joins; `value.turn` is the turn. */
  prompt_id?: string | null;
  /** The session. */
  session_id?: string | null;
  /** `x-qwen-session-event` */
  type: SessionEventType;
  /** What a custom event carries. */
  value?: unknown;
}

/** What a session event says it is. */
export type SessionEventType = "x-qwen-session-event";

/** A styled range, counted in Unicode scalar values of the record's text. */
export interface Span {
  /** The first one after it. */
  end: number;
  /** The first one in it. */
  start: number;
  /** How it looks. */
  style: SpanStyle;
}

/** How a range looks. */
export interface SpanStyle {
  /** The name of a colour in the theme, such as `AccentGreen`. */
  theme_token: string;
}

/** A suggestion. */
export interface SuggestionItem {
  /** What it means. */
  description?: string | null;
  /** What is shown. */
  label: string;
  /** What is inserted. */
  value: string;
}

/** What a terminal would have shown: a tool's output, a log line, or the end of a run. */
export interface TerminalRecord {
  /** The escapes that were removed, and where they stood. */
  ansi?: AnsiCode[];
  /** `stdout` or `stderr` */
  channel: string;
  /** How loud a console line is. */
  console_level?: string | null;
  /** How the run ended; only where the source is `system`. */
  exit_code?: number | null;
  /** Which part of the program wrote: `system`, `tool` or `debug`. */
  log_scope?: string | null;
  /** The call whose sub-agent's tool wrote. */
  parent_tool_call_id?: string | null;
  /** The turn; absent outside one. */
  prompt_id?: string | null;
  /** The session. */
  session_id?: string | null;
  /** `assistant`, `tool`, `console` or `system` */
  source: string;
  /** Styled ranges of `text`. */
  spans?: Span[];
  /** What was written, escapes removed. */
  text?: string;
  /** The call that wrote. */
  tool_call_id?: string | null;
  /** `x-qwen-terminal` */
  type: TerminalType;
}

/** What a terminal record says it is. */
export type TerminalType = "x-qwen-terminal";

/** A thought. */
export interface ThoughtRecord {
  /** The thought. */
  description: string;
  /** The call whose sub-agent thinks. */
  parent_tool_call_id?: string | null;
  /** The turn. */
  prompt_id?: string | null;
  /** The session. */
  session_id?: string | null;
  /** What it is about, in a few words. */
  subject: string;
  /** `x-qwen-thought` */
  type: ThoughtType;
}

/** What a thought says it is. */
export type ThoughtType = "x-qwen-thought";

/** One thing to do. */
export interface TodoRecord {
  /** What to do. */
  content: string;
  /** Its id. */
  id: string;
  /** `pending`, `in_progress` or `completed` */
  status: string;
}

/** Tokens, in OpenAI's words. */
export interface TokenUsage {
  /** Tokens written by the model. */
  completion_tokens: number;
  /** Of the completion's. */
  completion_tokens_details?: CompletionTokens | null;
  /** The provider reported none and these are an estimate. */
  estimated?: boolean;
  /** Tokens read by the model. */
  prompt_tokens: number;
  /** Of the prompt's. */
  prompt_tokens_details?: PromptTokens | null;
  /** Both together. */
  total_tokens: number;
}

/** How a tool call stands. */
export interface ToolDisplayRecord {
  /** What someone is asked to agree to, while they are asked. */
  confirmation?: ConfirmationRecord | null;
  /** The call whose sub-agent calls. */
  parent_tool_call_id?: string | null;
  /** The call has not started. */
  pending?: boolean;
  /** The turn. */
  prompt_id?: string | null;
  /** What people are shown. */
  result_display?: ResultDisplay | null;
  /** The session. */
  session_id?: string | null;
  /** `pending`, `confirming`, `executing`, `success`, `error` or `canceled` */
  status: string;
  /** Seconds since the Unix epoch. */
  timestamp: number;
  /** The call. */
  tool_call_id: string;
  /** The tool. */
  tool_name?: string | null;
  /** `x-qwen-tool-display` */
  type: ToolDisplayType;
}

/** What a tool display says it is. */
export type ToolDisplayType = "x-qwen-tool-display";

/** A tool and its arguments. */
export interface ToolUse {
  /** The arguments, an object. */
  arguments: Record<string, unknown>;
  /** The tool. */
  name: string;
}

/** The summary of a turn. */
export interface TurnSummary {
  /** A continuation of a turn that had ended, under the same `prompt_id`. */
  continuation?: boolean;
  /** Control requests that went wrong. */
  control_errors?: ErrorBody[];
  /** From start to end. */
  duration_ms: number;
  /** Model calls made. */
  model_calls: number;
  /** Calls that were refused. */
  permission_denials: PermissionDenial[];
  /** `done`, `error`, `cancelled`, `interrupted` or the limit that was reached. */
  status: string;
  /** The answer as data, where a schema was asked for. */
  structured_output?: unknown;
  /** Tool calls made. */
  tool_calls: number;
  /** Tokens by model. */
  usage_by_model: Record<string, ModelTokens>;
}

/** A call, whole. */
export interface WireToolCall {
  /** What is called. */
  function: FunctionCall;
  /** The call's id. */
  id: string;
  /** `function` */
  type: FunctionType;
}

/** A line of the qwen dialect in stream-json. */
export type StreamLine =
  | ChatCompletion
  | FatalError
  | TerminalRecord
  | ToolDisplayRecord
  | ThoughtRecord
  | SessionEventRecord
  | CommandLine
  | HintLine
  | HeartbeatLine
  | CancelLine
  | ControlRequestLine
  | ControlResponseLine
  | NestedResponseLine
  | ControlCancelLine;

/** A `chat.completion.chunk` line. */
export interface ChatCompletionChunk {
  /** One piece; none in the handshake. */
  choices: ChunkChoice[];
  /** Seconds since the Unix epoch. */
  created?: number;
  /** `chatcmpl-<session_id>` */
  id?: string;
  /** The handshake's announcement, an error, or the summary of a turn. */
  metadata?: Metadata | null;
  /** The model that writes. */
  model?: string;
  /** `chat.completion.chunk` */
  object?: ChunkObject;
  /** The turn; absent outside one. */
  prompt_id?: string | null;
  /** The session. */
  session_id?: string | null;
  /** Which program wrote the stream; only in the handshake. */
  system_fingerprint?: string | null;
  /** Tokens: of the message in its last chunk, of the whole turn in the turn's last chunk. */
  usage?: TokenUsage | null;
}

/** The one choice of a chunk. */
export interface ChunkChoice {
  /** What is new. */
  delta: Delta;
  /** Null until the message's last chunk. */
  finish_reason?: string | null;
  /** Always 0. */
  index?: number;
}

/** What a chunk says it is. */
export type ChunkObject = "chat.completion.chunk";

/** What is new in a chunk. */
export interface Delta {
  /** More text. */
  content?: string | null;
  /** Who writes; in a message's first chunk. */
  role?: AssistantRole | null;
  /** More of a call. */
  tool_calls?: ToolCallDelta[] | null;
}

/** More of what is called. */
export interface FunctionDelta {
  /** More of the arguments' text. */
  arguments?: string;
  /** The tool; in the first piece. */
  name?: string | null;
}

/** More of a call. */
export interface ToolCallDelta {
  /** What is called. */
  function: FunctionDelta;
  /** The call's id; in its first piece. */
  id?: string | null;
  /** The call's place in its message. */
  index: number;
  /** `function`; in its first piece. */
  type?: FunctionType | null;
}

/** A line of the qwen dialect in stream-chunk-json. */
export type StreamChunkLine =
  | ChatCompletionChunk
  | FatalError
  | TerminalRecord
  | ToolDisplayRecord
  | ThoughtRecord
  | SessionEventRecord
  | CommandLine
  | HintLine
  | HeartbeatLine
  | CancelLine
  | ControlRequestLine
  | ControlResponseLine
  | NestedResponseLine
  | ControlCancelLine;

/** Stop what you are doing. */
export interface CancelRequestLine {
  /** The turn or queued prompt that is meant; absent means whatever runs. */
  prompt_id?: string | null;
  /** Why; by default `escape`. */
  reason?: string | null;
  /** Where an answer on the control channel is wanted too. */
  request_id?: string | null;
  /** The session. */
  session_id?: string | null;
  /** `control/cancel` */
  type: CancelRequestType;
}

/** What asks us to stop. */
export type CancelRequestType = "control/cancel";

/** The Qwen Chat Request: something said to the agent. */
export interface ChatRequest {
  /** It continues the turn of the same `prompt_id`. */
  continuation?: boolean | null;
  /** `queue` (the default) waits for the end of the running turn; `steer` joins it before its next model call. */
  delivery?: string | null;
  /** What is said. */
  input: RequestInput;
  /** Another model for this request. */
  model?: string | null;
  /** Overrides for this request. */
  options?: RequestOptions | null;
  /** The turn; by default `<session_id>########<turn>`. */
  prompt_id?: string | null;
  /** The protocol version that the host relies on. */
  protocol_version?: string | null;
  /** Capabilities that the host relies on. */
  requires?: string[] | null;
  /** The prompt is sent again: it joins the turn of the same `prompt_id`. */
  resend?: boolean | null;
  /** The session; `_new` asks for a new one. */
  session_id?: string | null;
  /** The call that is answered; needed where the origin is `tool_response`. */
  tool_call_id?: string | null;
  /** The call that is answered, as it was asked for. */
  tool_request?: ToolRequest | null;
  /** The host's place in a trace (W3C Trace Context), under which the turn belongs; may stand in `metadata` too. */
  traceparent?: string | null;
  /** What goes with it. */
  tracestate?: string | null;
}

/** A request on the control channel is withdrawn. */
export interface ControlCancelInput {
  /** The request's id. */
  request_id: string;
  /** `control_cancel_request` */
  type: ControlCancelType;
}

/** A request on the control channel: flat, with `subtype` and its fields beside it, or nested, with both in `request`. */
export interface ControlInput {
  /** Nested: what is asked. */
  request?: NestedRequest | null;
  /** The request's id, to be repeated in the answer. */
  request_id: string;
  /** Flat: what is asked, such as `interrupt`. */
  subtype?: string | null;
  /** `control_request` */
  type: ControlRequestType;
  [key: string]: unknown;
}

/** An entry of the conversation. */
export interface ConversationMessage {
  /** What is said. */
  content?: RequestParts | null;
  /** `system`, `developer`, `user`, `assistant` or `tool` */
  role: string;
  /** The call that a tool message answers. */
  tool_call_id?: string | null;
  /** The calls of an assistant message. */
  tool_calls?: unknown[] | null;
}

/** The OpenAI request: a whole conversation, whose last user message is the prompt. */
export interface ConversationRequest {
  /** The conversation. */
  messages: ConversationMessage[];
  /** Another model for this request. */
  model?: string | null;
  /** The turn. */
  prompt_id?: string | null;
  /** The session; `_new` asks for a new one. */
  session_id?: string | null;
}

/** A command and its arguments. */
export interface DeclaredCommand {
  /** The rest, as typed. */
  args?: string | null;
  /** `slash`, `at` or `help` */
  kind: DeclaredKind;
  /** Its name and sub-names. */
  path: string[];
}

/** What kind of command. */
export type DeclaredKind = "slash" | "at" | "help";

/** A medium at an address. */
export interface FilePart {
  /** The address. */
  file_uri: string;
  /** Its type. */
  mime_type?: string | null;
}

/** A tool's answer. */
export interface FunctionResponse {
  /** The call; by default the request's `tool_call_id`. */
  id?: string | null;
  /** The tool. */
  name?: string | null;
  /** What it gave back: a text, or an object with `output` or `error`. */
  response: unknown;
}

/** A tool as the model is told about it. */
export interface FunctionSchema {
  /** What it does. */
  description?: string | null;
  /** Its name. */
  name: string;
  /** The JSON Schema of its arguments. */
  parameters?: Record<string, unknown> | null;
}

/** Are you there? */
export interface HeartbeatRequestLine {
  /** From now on send one every so many milliseconds; 0 stops that. */
  interval_ms?: number | null;
  /** The session. */
  session_id?: string | null;
  /** `heartbeat_request` */
  type: HeartbeatRequestType;
}

/** What asks for a sign of life. */
export type HeartbeatRequestType = "heartbeat_request";

/** The suggestions asked for are no longer wanted. */
export interface HintCancelLine {
  /** The prompt id of the request. */
  prompt_id?: string | null;
  /** The session. */
  session_id?: string | null;
  /** `command_hint_cancel` */
  type: HintCancelType;
}

/** What withdraws a request for suggestions. */
export type HintCancelType = "command_hint_cancel";

/** Where something is typed. */
export interface HintContext {
  /** The directory that paths are relative to. */
  cwd?: string | null;
  /** What is selected. */
  selected_text?: string | null;
}

/** What could be typed here? */
export interface HintRequestLine {
  /** Where it is typed. */
  context?: HintContext | null;
  /** Where the cursor is, in characters. */
  cursor?: number | null;
  /** The request's own prompt id, to be repeated in the answer. */
  prompt_id?: string | null;
  /** The session. */
  session_id?: string | null;
  /** The text so far. */
  text: string;
  /** `slash` or `at`; by default what the text starts with. */
  trigger?: Trigger | null;
  /** `command_hint_request` */
  type: HintRequestType;
}

/** What a request for suggestions says it is. */
export type HintRequestType = "command_hint_request";

/** A tool that the host runs. */
export interface HostTool {
  /** The tool. */
  function: FunctionSchema;
  /** `function` */
  type?: FunctionType | null;
}

/** A medium in line. */
export interface InlinePart {
  /** Its bytes, as base64. */
  data: string;
  /** Its type. */
  mime_type?: string | null;
}

/** A JSON Schema and its name. */
export interface NamedSchema {
  /** A name for it, which changes nothing. */
  name?: string | null;
  /** The schema. */
  schema: Record<string, unknown>;
}

/** What is asked, in the nested form. */
export interface NestedRequest {
  /** What is asked, such as `interrupt`. */
  subtype: string;
  [key: string]: unknown;
}

/** Who speaks. */
export type Origin = "user" | "tool_response" | "system";

/** What is said. */
export interface RequestInput {
  /** A command declared as such. */
  command?: DeclaredCommand | null;
  /** The same as `continuation` beside `input`, where that has none. */
  continuation?: boolean | null;
  /** Who speaks; by default the user. */
  origin?: Origin | null;
  /** What is said; needed unless there is a command. */
  parts?: RequestParts | null;
  /** The same as `tool_call_id` beside `input`, where that has none. */
  tool_call_id?: string | null;
  /** The same as `tool_request` beside `input`, where that has none. */
  tool_request?: ToolRequest | null;
}

/** Overrides for one request. */
export interface RequestOptions {
  /** How hard the model thinks: `low`, `medium`, `high`, … */
  effort?: string | null;
  /** The longest answer, in tokens. */
  max_tokens?: number | null;
  /** Another model. */
  model?: string | null;
  /** The form of the result. */
  response_format?: ResponseFormat | null;
  /** Makes sampling repeatable, where the provider can. */
  seed?: number | null;
  /** A text, or texts, at which the model stops. */
  stop?: Stop | null;
  /** How freely the model samples. */
  temperature?: number | null;
  /** Only these tools may be used. */
  tool_overrides?: string[] | null;
  /** Tools that the host runs, as OpenAI function schemas. */
  tools?: HostTool[] | null;
  /** How much of the probability it samples from. */
  top_p?: number | null;
}

/** A piece of what is said: a text, a tool's answer, or a medium. `type` may be left out where the one other key says what it is. */
export interface RequestPart {
  /** A medium at an address. */
  file_data?: FilePart | null;
  /** A tool's answer. */
  function_response?: FunctionResponse | null;
  /** An image at an address, in OpenAI's form: the address, or an object with `url`. */
  image_url?: unknown;
  /** A medium in line. */
  inline_data?: InlinePart | null;
  /** An image or a document in Claude's form. */
  source?: Record<string, unknown> | null;
  /** A text. */
  text?: string | null;
  /** `text`, `function_response`, `file_data`, `inline_data`, `image_url`, `image`, `document` or `tool_result` */
  type?: string | null;
}

/** A text, a part, or several. */
export type RequestParts = string | RequestPart | RequestPart[];

/** The form of a result, in the words of OpenAI. */
export type ResponseFormat = {
  type: "text";
} | {
  type: "json_object";
} | {
  /** The schema and its name. */
  json_schema: NamedSchema;
  type: "json_schema";
};

/** A text or texts. */
export type Stop = string | string[];

/** A call as it was asked for. */
export interface ToolRequest {
  /** Its arguments. */
  args?: Record<string, unknown> | null;
  /** The call. */
  callId?: string | null;
  /** The tool. */
  name?: string | null;
}

/** What triggers suggestions. */
export type Trigger = "slash" | "at";

/** The user line of the Claude and Qwen Code SDKs. */
export interface UserLine {
  /** What is said. */
  message: UserMessage;
  /** Not looked at: the line belongs to the session that runs. */
  session_id?: string | null;
  /** The host's place in a trace (W3C Trace Context), under which the turn belongs. */
  traceparent?: string | null;
  /** What goes with it. */
  tracestate?: string | null;
  /** `user` */
  type: UserType;
  /** The client's own id of the message. */
  uuid?: string | null;
}

/** What the user says. */
export interface UserMessage {
  /** A text, or blocks. */
  content: RequestParts;
  /** `user` */
  role: UserType;
}

/** What a user line says it is. */
export type UserType = "user";

/** A line that a host writes. */
export type InputLine =
  | ChatRequest
  | ConversationRequest
  | UserLine
  | HintRequestLine
  | HintCancelLine
  | HeartbeatRequestLine
  | CancelRequestLine
  | ControlInput
  | ControlResponseLine
  | NestedResponseLine
  | ControlCancelInput;
