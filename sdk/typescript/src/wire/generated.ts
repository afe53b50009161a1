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

/** What the runs of one sub-agent spent, without the sub-agents that it started. */
export interface AgentTokens {
  /** The part of the prompt tokens served from the provider's cache. */
  cached_tokens?: number | null;
  /** The number of output tokens. */
  completion_tokens: number;
  /** The cost in US dollars; absent if the model's prices are unknown. */
  cost_usd?: number | null;
  /** The number of model calls. */
  model_calls: number;
  /** The number of input tokens. */
  prompt_tokens: number;
  /** The part of the completion tokens spent on thinking. */
  reasoning_tokens?: number | null;
  /** How often it was started. */
  runs: number;
  /** The number of tool calls. */
  tool_calls: number;
  /** The sum of both. */
  total_tokens: number;
}

/** An escape sequence that was removed. */
export interface AnsiCode {
  /** The escape sequence that was removed. */
  code: string;
  /** Its position in the record's text, in Unicode scalar values. */
  offset: number;
}

/** A message of the model. */
export interface AssistantMessage {
  /** The text; absent if the message has only tool calls. */
  content?: string | null;
  /** `assistant` */
  role: AssistantRole;
  /** The tool calls of the message. */
  tool_calls?: WireToolCall[] | null;
}

/** The role of the author. */
export type AssistantRole = "assistant";

/** The result of a cancel request. */
export interface CancelLine {
  /** A message for users about what was cancelled. */
  message?: string;
  /** The id of the turn or queued prompt that the request named. */
  prompt_id?: string | null;
  /** The `reason` of the request. */
  reason?: string;
  /** The id of the session. */
  session_id?: string | null;
  /** `ok`, or `noop` if there was nothing to cancel. */
  status: string;
  /** `result/cancel` */
  type: CancelType;
}

/** The literal `result/cancel`. */
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
  /** The id of the turn's prompt; absent outside a turn. */
  prompt_id?: string | null;
  /** The id of the session. */
  session_id?: string | null;
  /** The program that wrote the stream; only in the handshake. */
  system_fingerprint?: string | null;
  /** Tokens: of the message, or in the terminal record of the whole turn. */
  usage?: TokenUsage | null;
}

/** The one choice of a `chat.completion`. */
export interface Choice {
  /** `stop`, `tool_calls`, `length`, `content_filter` or `error`. */
  finish_reason: string;
  /** The index of the choice; always 0. */
  index: number;
  /** The message that the line carries. */
  message: AssistantMessage;
}

/** The result of a slash command. */
export interface CommandLine {
  /** The command as it was parsed. */
  command: CommandName;
  /** Features that are unavailable because there is no control channel. */
  limitation?: string | null;
  /** The id of the prompt that contained the command. */
  prompt_id: string;
  /** The outcome of the command. */
  result: CommandOutcome;
  /** The id of the session. */
  session_id: string;
  /** `result/command` */
  type: CommandType;
}

/** A parsed command with its arguments. */
export interface CommandName {
  /** The arguments as typed. */
  args?: string;
  /** `slash`, `at` or `help` */
  kind: string;
  /** The command's name followed by the names of its subcommands. */
  path: string[];
}

/** The outcome of a command. */
export interface CommandOutcome {
  /** The text of a message, or the submitted prompt. */
  content?: string | null;
  /** The content of the dialog. */
  data?: unknown;
  /** The name of the dialog. */
  dialog?: string | null;
  /** The level of a message: `info`, `warning` or `error`. */
  level?: string | null;
  /** The tool that was run. */
  tool?: ToolUse | null;
  /** `message`, `dialog`, `tool` or `submit_prompt` */
  type: string;
}

/** The literal `result/command`. */
export type CommandType = "result/command";

/** The literal `chat.completion`. */
export type CompletionObject = "chat.completion";

/** Details of the completion tokens. */
export interface CompletionTokens {
  /** Tokens spent on thinking. */
  reasoning_tokens: number;
}

/** The content of a permission request. */
export type ConfirmationRecord = {
  /** The unified diff. */
  diff: string;
  /** The path as displayed to users. */
  file_name: string;
  /** The absolute path of the file. */
  file_path: string;
  /** The text after the change. */
  modified: string;
  /** The text before the change; null for a new file. */
  original?: string | null;
  /** Line counts. */
  stat: LineCounts;
  /** A title. */
  title: string;
  type: "edit";
} | {
  /** The command line. */
  command: string;
  /** The programs that the command starts. */
  root_command: string;
  /** A title. */
  title: string;
  type: "exec";
} | {
  /** The name of the MCP server. */
  server_name: string;
  /** A title. */
  title: string;
  /** The display name of the tool. */
  tool_display_name: string;
  /** The name of the tool on its server. */
  tool_name: string;
  type: "mcp";
} | {
  /** A description of the call. */
  prompt: string;
  /** A title. */
  title: string;
  type: "info";
  /** URLs that the call would fetch. */
  urls?: string[];
} | {
  /** The plan, in Markdown. */
  plan: string;
  /** A title. */
  title: string;
  type: "plan";
};

/** A result or an error. */
export interface ControlAnswer {
  /** The error, if the request failed. */
  error?: ControlError | null;
  /** The content of the response. */
  result?: unknown;
  /** `success` or `error` */
  subtype: string;
}

/** A withdrawn control request. */
export interface ControlCancelLine {
  /** The id of the running turn's prompt. */
  prompt_id?: string | null;
  /** The id of the control request, repeated in its response. */
  request_id: string;
  /** The id of the session. */
  session_id?: string | null;
  /** `control_cancel_request` */
  type: ControlCancelType;
}

/** The literal `control_cancel_request`. */
export type ControlCancelType = "control_cancel_request";

/** The error of a control request. */
export interface ControlError {
  /** A stable identifier for programs. */
  code?: string | null;
  /** The error message for users. */
  message: string;
  /** True if a retry may succeed. */
  retryable?: boolean;
}

/** The reason for a permission request. */
export interface ControlMetadata {
  /** The id of the sub-agent that sent the request; absent for the main agent. */
  agent_id?: string | null;
  /** The path outside the workspace that caused the request, if one did. */
  blocked_path?: string | null;
  /** Information to display to the user. */
  confirmation?: ConfirmationRecord | null;
  /** The reason for the request. */
  reason: string;
  /** The id of the tool call. */
  tool_call_id?: string | null;
}

/** A control request to the host, in the flat form. */
export interface ControlRequestLine {
  /** `hook_callback`: the id under which the host registered the hook. */
  callback_id?: string | null;
  /** `hook_callback`: the input of the hook. */
  input?: unknown;
  /** `mcp_message`: the JSON-RPC message. */
  message?: unknown;
  /** `can_use_tool`: the reason for the request and information to display. */
  metadata?: ControlMetadata | null;
  /** The id of the turn's prompt; absent outside a turn. */
  prompt_id?: string | null;
  /** The id of the control request, repeated in its response. */
  request_id: string;
  /** `mcp_message`: the name of the server. */
  server_name?: string | null;
  /** The id of the session. */
  session_id: string;
  /** `can_use_tool`, `hook_callback` or `mcp_message` */
  subtype: string;
  /** `can_use_tool`: the arguments of the call. */
  tool?: ToolUse | null;
  /** `hook_callback`: the id of the tool call that it concerns. */
  tool_use_id?: string | null;
  /** `control_request` */
  type: ControlRequestType;
}

/** The literal `control_request`. */
export type ControlRequestType = "control_request";

/** A response on the control channel, in the flat form. */
export interface ControlResponseLine {
  /** The id of the running turn's prompt. */
  prompt_id?: string | null;
  /** The id of the control request, repeated in its response. */
  request_id: string;
  /** The content of the response. */
  response: ControlAnswer;
  /** The id of the session. */
  session_id?: string | null;
  /** `control_response` */
  type: ControlResponseType;
}

/** The literal `control_response`. */
export type ControlResponseType = "control_response";

/** An error in OpenAI's form. */
export interface ErrorBody {
  /** A stable identifier for programs. */
  code?: string | null;
  /** What was attempted, what failed, and what to do next. */
  message: string;
  /** The invalid field of the request. */
  param?: string | null;
  /** True if a retry may succeed. */
  retryable?: boolean;
  /** The HTTP status code, if a server returned one. */
  status?: number | null;
  /** The kind of error. */
  type: string;
}

/** The line of a fatal error. */
export interface FatalError {
  /** The error, if the request failed. */
  error: ErrorBody;
}

/** The function and its arguments. */
export interface FunctionCall {
  /** The arguments, a JSON object as text. */
  arguments: string;
  /** The name of the tool. */
  name: string;
}

/** The kind of tool of a call. */
export type FunctionType = "function";

/** A heartbeat of the worker. */
export interface HeartbeatLine {
  /** The activity of the running turn: `thinking`, `tool`, or `waiting` while the host runs a tool. */
  activity?: string | null;
  /** The id of the running turn's prompt. */
  prompt_id?: string | null;
  /** The id of the session. */
  session_id: string;
  /** `ok` */
  status: string;
  /** The name of the tool that is running or that the host runs. */
  tool?: string | null;
  /** Seconds since the Unix epoch. */
  ts: number;
  /** `result/heartbeat` */
  type: HeartbeatType;
}

/** The literal `result/heartbeat`. */
export type HeartbeatType = "result/heartbeat";

/** Completions of the text that is being typed. */
export interface HintLine {
  /** The error, if there is one. */
  message?: string | null;
  /** Additional information about the suggestions. */
  metadata: HintMetadata;
  /** The `prompt_id` of the request. */
  prompt_id: string;
  /** The id of the session. */
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

/** Additional information about suggestions. */
export interface HintMetadata {
  /** True if the text already equals one of the suggestions. */
  is_perfect_match: boolean;
}

/** The literal `result/command_hint`. */
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

/** Information beyond OpenAI's fields. */
export interface Metadata {
  /** The names of the supported capabilities; only in the handshake. */
  capabilities?: string[] | null;
  /** Failed control requests of the turn, also in its summary; only in its terminal record. */
  control_errors?: ErrorBody[];
  /** The error, or the limit that was reached. */
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

/** Figures that belong to a notice. */
export interface Metrics {
  /** The attempt that failed, from 1. */
  attempt?: number | null;
  /** The number of tokens after compaction. */
  compressed_tokens?: number | null;
  /** The delay before the next attempt in milliseconds. */
  delay_ms?: number | null;
  /** The limit that was reached. */
  limit?: number | null;
  /** The maximum number of retries. */
  max_retries?: number | null;
  /** The number of tokens before compaction. */
  original_tokens?: number | null;
  /** The HTTP status of the failed attempt. */
  status?: number | null;
}

/** The usage of one model. */
export interface ModelTokens {
  /** The part of the prompt tokens served from the provider's cache. */
  cached_tokens?: number | null;
  /** The number of calls to the model. */
  calls: number;
  /** The number of output tokens. */
  completion_tokens: number;
  /** The cost in US dollars; absent if the model's prices are unknown. */
  cost_usd?: number | null;
  /** The number of input tokens. */
  prompt_tokens: number;
  /** The part of the completion tokens spent on thinking. */
  reasoning_tokens?: number | null;
  /** The sum of both. */
  total_tokens: number;
}

/** A response in the nested form. */
export interface NestedAnswer {
  /** The error, if the request failed. */
  error?: string | null;
  /** The id of the control request, repeated in its response. */
  request_id: string;
  /** The content of the response. */
  response?: unknown;
  /** `success` or `error` */
  subtype: string;
}

/** A response on the control channel in the nested form, used for requests in that form. */
export interface NestedResponseLine {
  /** The id of the running turn's prompt. */
  prompt_id?: string | null;
  /** The content of the response. */
  response: NestedAnswer;
  /** The id of the session. */
  session_id?: string | null;
  /** `control_response` */
  type: ControlResponseType;
}

/** A tool call that was refused. */
export interface PermissionDenial {
  /** The arguments of the call, a JSON object. */
  arguments: unknown;
  /** The reason for the refusal. */
  reason: string;
  /** The id of the tool call. */
  tool_call_id: string;
  /** The name of the tool. */
  tool_name: string;
}

/** Details of the prompt tokens. */
export interface PromptTokens {
  /** Tokens newly written to the provider's cache. */
  cache_write_tokens?: number | null;
  /** Tokens served from the provider's cache. */
  cached_tokens: number;
}

/** The result of a tool for display. */
export type ResultDisplay = {
  kind: "string";
  /** A category for filtering: `tool`. */
  log_scope?: string | null;
  /** The text of the block. */
  text: string;
} | {
  /** The unified diff. */
  diff: string;
  /** The path as displayed to users. */
  file_name: string;
  kind: "file_diff";
  /** The text after the change. */
  modified: string;
  /** The text before the change; null for a new file. */
  original?: string | null;
  /** Line counts. */
  stat: LineCounts;
} | {
  kind: "todo_list";
  /** The items of the list. */
  todos: TodoRecord[];
} | {
  kind: "plan_summary";
  /** A one-line summary. */
  message: string;
  /** The plan, in Markdown. */
  plan: string;
} | {
  /** The sub-agent's name. */
  agent: string;
  /** The task given to the sub-agent. */
  description: string;
  kind: "task_execution";
  /** The sub-agent's final report. */
  result?: string | null;
  /** `running`, `completed`, `failed` or `cancelled` */
  status: string;
  /** The tokens used so far. */
  tokens: number;
  /** The number of tool calls so far. */
  tool_calls: number;
};

/** A notice about the session. */
export interface SessionEventRecord {
  /** `Finished`, `ChatCompressed`, `MaxSessionTurns`, `USER_CANCELLED`, `MAX_TOKENS`, `Retry`, `ModelFallback`, `LoopDetected`, `ModeChanged`, `Steered` or `Custom` */
  event: string;
  /** A message for users about the event. */
  message?: string;
  /** Figures that belong to the event. */
  metrics?: Metrics | null;
  /** The id of the tool call that started the sub-agent. */
  parent_tool_call_id?: string | null;
  /** The id of the turn's prompt; absent outside a turn. For `Steered` the id of the prompt that joins; `value.turn` is the turn. */
  prompt_id?: string | null;
  /** The id of the session. */
  session_id?: string | null;
  /** `x-qwen-session-event` */
  type: SessionEventType;
  /** The payload of a custom event. */
  value?: unknown;
}

/** The literal `x-qwen-session-event`. */
export type SessionEventType = "x-qwen-session-event";

/** A styled range, counted in Unicode scalar values of the record's text. */
export interface Span {
  /** The position after the last character. */
  end: number;
  /** The position of the first character. */
  start: number;
  /** The style of the range. */
  style: SpanStyle;
}

/** The style of a range. */
export interface SpanStyle {
  /** The name of a colour in the theme, such as `AccentGreen`. */
  theme_token: string;
}

/** A completion of the text that is being typed. */
export interface SuggestionItem {
  /** A description of the suggestion. */
  description?: string | null;
  /** The text to display. */
  label: string;
  /** The text to insert. */
  value: string;
}

/** Terminal output: a tool's output, a log line, or the end of a run. */
export interface TerminalRecord {
  /** The removed escape sequences with their positions. */
  ansi?: AnsiCode[];
  /** `stdout` or `stderr` */
  channel: string;
  /** The level of a console line. */
  console_level?: string | null;
  /** The exit code of the run; only if the source is `system`. */
  exit_code?: number | null;
  /** The origin of the output: `system`, `tool` or `debug`. */
  log_scope?: string | null;
  /** The id of the tool call that started the sub-agent whose tool wrote. */
  parent_tool_call_id?: string | null;
  /** The id of the turn's prompt; absent outside a turn. */
  prompt_id?: string | null;
  /** The id of the session. */
  session_id?: string | null;
  /** `assistant`, `tool`, `console` or `system` */
  source: string;
  /** Styled ranges of `text`. */
  spans?: Span[];
  /** The output without escape sequences. */
  text?: string;
  /** The id of the tool call that wrote. */
  tool_call_id?: string | null;
  /** `x-qwen-terminal` */
  type: TerminalType;
}

/** The literal `x-qwen-terminal`. */
export type TerminalType = "x-qwen-terminal";

/** A thought of the model. */
export interface ThoughtRecord {
  /** The text of the thought. */
  description: string;
  /** The id of the tool call that started the sub-agent. */
  parent_tool_call_id?: string | null;
  /** The id of the turn's prompt. */
  prompt_id?: string | null;
  /** The id of the session. */
  session_id?: string | null;
  /** The subject of the thought. */
  subject: string;
  /** `x-qwen-thought` */
  type: ThoughtType;
}

/** The literal `x-qwen-thought`. */
export type ThoughtType = "x-qwen-thought";

/** An item of a to-do list. */
export interface TodoRecord {
  /** The text of the item. */
  content: string;
  /** The id of the item. */
  id: string;
  /** `pending`, `in_progress` or `completed` */
  status: string;
}

/** Token counts under OpenAI's names. */
export interface TokenUsage {
  /** Tokens written by the model. */
  completion_tokens: number;
  /** Details of the completion tokens. */
  completion_tokens_details?: CompletionTokens | null;
  /** True if the provider reported no usage and the counts are estimates. */
  estimated?: boolean;
  /** Tokens read by the model. */
  prompt_tokens: number;
  /** Details of the prompt tokens. */
  prompt_tokens_details?: PromptTokens | null;
  /** The sum of both. */
  total_tokens: number;
}

/** The state of a tool call. */
export interface ToolDisplayRecord {
  /** The content of the permission request while it is open. */
  confirmation?: ConfirmationRecord | null;
  /** The id of the tool call that started the sub-agent. */
  parent_tool_call_id?: string | null;
  /** The call has not started. */
  pending?: boolean;
  /** The id of the turn's prompt. */
  prompt_id?: string | null;
  /** The result for display. */
  result_display?: ResultDisplay | null;
  /** The id of the session. */
  session_id?: string | null;
  /** `pending`, `confirming`, `executing`, `success`, `error` or `canceled` */
  status: string;
  /** Seconds since the Unix epoch. */
  timestamp: number;
  /** The id of the tool call. */
  tool_call_id: string;
  /** The name of the tool. */
  tool_name?: string | null;
  /** `x-qwen-tool-display` */
  type: ToolDisplayType;
}

/** The literal `x-qwen-tool-display`. */
export type ToolDisplayType = "x-qwen-tool-display";

/** A tool and its arguments. */
export interface ToolUse {
  /** The arguments of the call, a JSON object. */
  arguments: Record<string, unknown>;
  /** The name of the tool. */
  name: string;
}

/** The summary of a turn. */
export interface TurnSummary {
  /** True if the turn continued one that had ended under the same `prompt_id`. */
  continuation?: boolean;
  /** The control requests of the turn that failed. */
  control_errors?: ErrorBody[];
  /** The duration of the turn in milliseconds. */
  duration_ms: number;
  /** The number of model calls. */
  model_calls: number;
  /** The tool calls that were refused. */
  permission_denials: PermissionDenial[];
  /** `done`, `error`, `cancelled`, `interrupted` or the limit that was reached. */
  status: string;
  /** The validated structured output, if a schema was given. */
  structured_output?: unknown;
  /** The number of tool calls. */
  tool_calls: number;
  /** The part of the turn that sub-agents spent, by name; absent without sub-agents. */
  usage_by_agent?: Record<string, AgentTokens>;
  /** The usage of the turn by model. */
  usage_by_model: Record<string, ModelTokens>;
}

/** A complete tool call. */
export interface WireToolCall {
  /** The function that is called. */
  function: FunctionCall;
  /** The id of the call, unique in its session. */
  id: string;
  /** Always the literal `function`. */
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
  /** The id of the turn's prompt; absent outside a turn. */
  prompt_id?: string | null;
  /** The id of the session. */
  session_id?: string | null;
  /** The program that wrote the stream; only in the handshake. */
  system_fingerprint?: string | null;
  /** Tokens: of the message in its last chunk, of the whole turn in the turn's last chunk. */
  usage?: TokenUsage | null;
}

/** The one choice of a chunk. */
export interface ChunkChoice {
  /** The increment of the message. */
  delta: Delta;
  /** Null until the message's last chunk. */
  finish_reason?: string | null;
  /** The index of the choice; always 0. */
  index?: number;
}

/** The literal `chat.completion.chunk`. */
export type ChunkObject = "chat.completion.chunk";

/** The increment of a chunk. */
export interface Delta {
  /** The next piece of text. */
  content?: string | null;
  /** The role of the author; only in a message's first chunk. */
  role?: AssistantRole | null;
  /** Increments of tool calls. */
  tool_calls?: ToolCallDelta[] | null;
}

/** An increment of a function call. */
export interface FunctionDelta {
  /** The next piece of the arguments as JSON text. */
  arguments?: string;
  /** The name of the tool; only in the first piece. */
  name?: string | null;
}

/** Increments of tool calls. */
export interface ToolCallDelta {
  /** The function that is called. */
  function: FunctionDelta;
  /** The id of the call; only in its first piece. */
  id?: string | null;
  /** The index of the call in its message. */
  index: number;
  /** `function`; only in the first piece. */
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

/** A request to cancel a turn. */
export interface CancelRequestLine {
  /** The id of the turn or queued prompt to cancel; by default the running turn. */
  prompt_id?: string | null;
  /** The reason; by default `escape`. */
  reason?: string | null;
  /** Set to receive a response on the control channel as well. */
  request_id?: string | null;
  /** The id of the session. */
  session_id?: string | null;
  /** `control/cancel` */
  type: CancelRequestType;
}

/** The literal `control/cancel`. */
export type CancelRequestType = "control/cancel";

/** The Qwen Chat Request: input for the agent. */
export interface ChatRequest {
  /** True if the request continues the turn with the same `prompt_id`. */
  continuation?: boolean | null;
  /** `queue` (the default) waits for the end of the running turn; `steer` joins it before its next model call. */
  delivery?: string | null;
  /** The origin and content of the request. */
  input: RequestInput;
  /** A model for this request only. */
  model?: string | null;
  /** Overrides for this request. */
  options?: RequestOptions | null;
  /** The id of the prompt, unique in its session; by default `<session_id>########<turn>`. */
  prompt_id?: string | null;
  /** The protocol version that the host requires. */
  protocol_version?: string | null;
  /** The capabilities that the host requires. */
  requires?: string[] | null;
  /** True for a repeated prompt: it joins the turn with the same `prompt_id`. */
  resend?: boolean | null;
  /** The id of the session; `_new` creates one. */
  session_id?: string | null;
  /** The id of the tool call that is answered; required with origin `tool_response`. */
  tool_call_id?: string | null;
  /** The tool call that is answered, as it was requested. */
  tool_request?: ToolRequest | null;
  /** The host's W3C trace context, the parent of the turn's span; also accepted in `metadata`. */
  traceparent?: string | null;
  /** Additional information about the request. */
  tracestate?: string | null;
}

/** A request on the control channel is withdrawn. */
export interface ControlCancelInput {
  /** The id of the control request. */
  request_id: string;
  /** Always the literal `control_cancel_request`. */
  type: ControlCancelType;
}

/** A control request: flat, with `subtype` and its fields at the top level, or nested, with both in `request`. */
export interface ControlInput {
  /** Nested form: the request. */
  request?: NestedRequest | null;
  /** The id of the request, repeated in the response. */
  request_id: string;
  /** Flat form: the kind of request, such as `interrupt`. */
  subtype?: string | null;
  /** `control_request` */
  type: ControlRequestType;
  [key: string]: unknown;
}

/** An entry of the conversation. */
export interface ConversationMessage {
  /** The content of the message. */
  content?: RequestParts | null;
  /** `system`, `developer`, `user`, `assistant` or `tool` */
  role: string;
  /** The id of the call that a tool message answers. */
  tool_call_id?: string | null;
  /** The calls of an assistant message. */
  tool_calls?: unknown[] | null;
}

/** The OpenAI request: a whole conversation, whose last user message is the prompt. */
export interface ConversationRequest {
  /** The messages of the conversation, oldest first. */
  messages: ConversationMessage[];
  /** A model for this request only. */
  model?: string | null;
  /** The id of the turn's prompt. */
  prompt_id?: string | null;
  /** The id of the session; `_new` creates one. */
  session_id?: string | null;
}

/** A parsed command with its arguments. */
export interface DeclaredCommand {
  /** The arguments as typed. */
  args?: string | null;
  /** `slash`, `at` or `help` */
  kind: DeclaredKind;
  /** The command's name followed by the names of its subcommands. */
  path: string[];
}

/** The kind of command. */
export type DeclaredKind = "slash" | "at" | "help";

/** A medium given by its URL. */
export interface FilePart {
  /** The URL of the file. */
  file_uri: string;
  /** The MIME type of the data. */
  mime_type?: string | null;
}

/** The result of a tool that the host ran. */
export interface FunctionResponse {
  /** The id of the call; by default the request's `tool_call_id`. */
  id?: string | null;
  /** The name of the tool. */
  name?: string | null;
  /** The result: a text, or an object with `output` or `error`. */
  response: unknown;
}

/** The function definition of a tool. */
export interface FunctionSchema {
  /** A description of the tool for the model. */
  description?: string | null;
  /** The name of the function. */
  name: string;
  /** The JSON Schema of its arguments. */
  parameters?: Record<string, unknown> | null;
}

/** A request for a heartbeat. */
export interface HeartbeatRequestLine {
  /** The interval of periodic heartbeats in milliseconds; 0 stops them. */
  interval_ms?: number | null;
  /** The id of the session. */
  session_id?: string | null;
  /** `heartbeat_request` */
  type: HeartbeatRequestType;
}

/** The literal `heartbeat_request`. */
export type HeartbeatRequestType = "heartbeat_request";

/** Withdraws a request for suggestions. */
export interface HintCancelLine {
  /** The `prompt_id` of the request. */
  prompt_id?: string | null;
  /** The id of the session. */
  session_id?: string | null;
  /** `command_hint_cancel` */
  type: HintCancelType;
}

/** The literal `command_hint_cancel`. */
export type HintCancelType = "command_hint_cancel";

/** The context of the text that is being typed. */
export interface HintContext {
  /** The directory that paths are relative to. */
  cwd?: string | null;
  /** The text that is selected in the editor. */
  selected_text?: string | null;
}

/** A request for suggestions. */
export interface HintRequestLine {
  /** The context of the text. */
  context?: HintContext | null;
  /** The position of the cursor in characters. */
  cursor?: number | null;
  /** The id of the request, repeated in the response. */
  prompt_id?: string | null;
  /** The id of the session. */
  session_id?: string | null;
  /** The text so far. */
  text: string;
  /** `slash` or `at`; by default derived from the first character of the text. */
  trigger?: Trigger | null;
  /** `command_hint_request` */
  type: HintRequestType;
}

/** The literal `command_hint_request`. */
export type HintRequestType = "command_hint_request";

/** A tool that the host runs. */
export interface HostTool {
  /** The function definition of the tool. */
  function: FunctionSchema;
  /** `function` */
  type?: FunctionType | null;
}

/** A medium whose data is inside the message. */
export interface InlinePart {
  /** The bytes as base64. */
  data: string;
  /** The MIME type of the data. */
  mime_type?: string | null;
}

/** A JSON Schema and its name. */
export interface NamedSchema {
  /** A name for the schema, without effect. */
  name?: string | null;
  /** The JSON Schema of the result. */
  schema: Record<string, unknown>;
}

/** The request in the nested form. */
export interface NestedRequest {
  /** The kind of request, such as `interrupt`. */
  subtype: string;
  [key: string]: unknown;
}

/** The origin of an input. */
export type Origin = "user" | "tool_response" | "system";

/** The content of a request: its origin and its text or command. */
export interface RequestInput {
  /** A command given explicitly. */
  command?: DeclaredCommand | null;
  /** The same as the top-level `continuation`, used if that is absent. */
  continuation?: boolean | null;
  /** The origin; by default the user. */
  origin?: Origin | null;
  /** The content; required unless there is a command. */
  parts?: RequestParts | null;
  /** The same as the top-level `tool_call_id`, used if that is absent. */
  tool_call_id?: string | null;
  /** The same as the top-level `tool_request`, used if that is absent. */
  tool_request?: ToolRequest | null;
}

/** Overrides for one request. */
export interface RequestOptions {
  /** The reasoning effort: `low`, `medium`, `high`, … */
  effort?: string | null;
  /** The output limit in tokens. */
  max_tokens?: number | null;
  /** The model for this request. */
  model?: string | null;
  /** The format of the result. */
  response_format?: ResponseFormat | null;
  /** The seed for repeatable sampling, if the provider supports it. */
  seed?: number | null;
  /** One or more stop sequences. */
  stop?: Stop | null;
  /** The sampling temperature of the model. */
  temperature?: number | null;
  /** An allow-list of tools for this request. */
  tool_overrides?: string[] | null;
  /** Tools that the host runs, as OpenAI function schemas. */
  tools?: HostTool[] | null;
  /** The nucleus sampling threshold. */
  top_p?: number | null;
}

/** A part of the content: a text, a tool result or a medium. `type` may be absent if the only other key identifies the kind. */
export interface RequestPart {
  /** A medium given by its URL. */
  file_data?: FilePart | null;
  /** The result of a tool that the host ran. */
  function_response?: FunctionResponse | null;
  /** An image in OpenAI's form: a URL, or an object with `url`. */
  image_url?: unknown;
  /** A medium whose data is inside the message. */
  inline_data?: InlinePart | null;
  /** An image or a document in Claude's form. */
  source?: Record<string, unknown> | null;
  /** The text of a text part. */
  text?: string | null;
  /** `text`, `function_response`, `file_data`, `inline_data`, `image_url`, `image`, `document` or `tool_result` */
  type?: string | null;
}

/** A text, a part, or several. */
export type RequestParts = string | RequestPart | RequestPart[];

/** The format of a result, in OpenAI's form. */
export type ResponseFormat = {
  type: "text";
} | {
  type: "json_object";
} | {
  /** The schema and its name. */
  json_schema: NamedSchema;
  type: "json_schema";
};

/** One text or several. */
export type Stop = string | string[];

/** A tool call as it was requested. */
export interface ToolRequest {
  /** The arguments of the call, a JSON object. */
  args?: Record<string, unknown> | null;
  /** The id of the tool call. */
  callId?: string | null;
  /** The name of the tool. */
  name?: string | null;
}

/** The trigger of suggestions. */
export type Trigger = "slash" | "at";

/** The user line of the Claude and Qwen Code SDKs. */
export interface UserLine {
  /** The message of the user. */
  message: UserMessage;
  /** Ignored: the line belongs to the running session. */
  session_id?: string | null;
  /** The host's W3C trace context, the parent of the turn's span. */
  traceparent?: string | null;
  /** Additional information about the request. */
  tracestate?: string | null;
  /** `user` */
  type: UserType;
  /** The client's own id of the message. */
  uuid?: string | null;
}

/** A message of the user. */
export interface UserMessage {
  /** A plain text or a list of blocks. */
  content: RequestParts;
  /** Always the literal `user`. */
  role: UserType;
}

/** The literal `user`. */
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
