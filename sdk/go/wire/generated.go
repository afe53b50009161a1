// Code generated from schemas/ by sdk/codegen/go.go; DO NOT EDIT.

package wire

import "encoding/json"

// StreamTypes holds the `type` (or `object`) of every line that a worker writes.
var StreamTypes = []string{
	"chat.completion",
	"chat.completion.chunk",
	"control_cancel_request",
	"control_request",
	"control_response",
	"result/cancel",
	"result/command",
	"result/command_hint",
	"result/heartbeat",
	"x-qwen-session-event",
	"x-qwen-terminal",
	"x-qwen-thought",
	"x-qwen-tool-display",
}

// AgentTokens: What the runs of one sub-agent spent, without the sub-agents that it started.
type AgentTokens struct {
	// The part of the prompt tokens served from the provider's cache.
	CachedTokens *int64 `json:"cached_tokens,omitempty"`
	// The number of output tokens.
	CompletionTokens int64 `json:"completion_tokens"`
	// The cost in US dollars; absent if the model's prices are unknown.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	// The number of model calls.
	ModelCalls int64 `json:"model_calls"`
	// The number of input tokens.
	PromptTokens int64 `json:"prompt_tokens"`
	// The part of the completion tokens spent on thinking.
	ReasoningTokens *int64 `json:"reasoning_tokens,omitempty"`
	// How often it was started.
	Runs int64 `json:"runs"`
	// The number of tool calls.
	ToolCalls int64 `json:"tool_calls"`
	// The sum of both.
	TotalTokens int64 `json:"total_tokens"`
}

// AnsiCode: An escape sequence that was removed.
type AnsiCode struct {
	// The escape sequence that was removed.
	Code string `json:"code"`
	// Its position in the record's text, in Unicode scalar values.
	Offset int64 `json:"offset"`
}

// AssistantMessage: A message of the model.
type AssistantMessage struct {
	// The text; absent if the message has only tool calls.
	Content string `json:"content,omitempty"`
	// `assistant`
	Role string `json:"role"`
	// The tool calls of the message.
	ToolCalls []WireToolCall `json:"tool_calls,omitempty"`
}

// Values of AssistantRole: The role of the author.
const (
	// `assistant`
	AssistantRoleAssistant = "assistant"
)

// CancelLine: The result of a cancel request.
type CancelLine struct {
	// A message for users about what was cancelled.
	Message string `json:"message,omitempty"`
	// The id of the turn or queued prompt that the request named.
	PromptID string `json:"prompt_id,omitempty"`
	// The `reason` of the request.
	Reason string `json:"reason,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// `ok`, or `noop` if there was nothing to cancel.
	Status string `json:"status"`
	// `result/cancel`
	Type string `json:"type"`
}

// CancelRequestLine: A request to cancel a turn.
type CancelRequestLine struct {
	// The id of the turn or queued prompt to cancel; by default the running turn.
	PromptID string `json:"prompt_id,omitempty"`
	// The reason; by default `escape`.
	Reason string `json:"reason,omitempty"`
	// Set to receive a response on the control channel as well.
	RequestID string `json:"request_id,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// `control/cancel`
	Type string `json:"type"`
}

// Values of CancelRequestType: The literal `control/cancel`.
const (
	// `control/cancel`
	CancelRequestTypeControlCancel = "control/cancel"
)

// Values of CancelType: The literal `result/cancel`.
const (
	// `result/cancel`
	CancelTypeResultCancel = "result/cancel"
)

// ChatCompletion: A `chat.completion` line: the handshake, an assistant message, an error, or the terminal record of a turn.
type ChatCompletion struct {
	// One message; none in the handshake.
	Choices []Choice `json:"choices"`
	// Seconds since the Unix epoch.
	Created int64 `json:"created"`
	// `chatcmpl-<session_id>`
	ID string `json:"id"`
	// The handshake's announcement, an error, or the summary of a turn.
	Metadata *Metadata `json:"metadata,omitempty"`
	// The model that wrote, or that the session starts with.
	Model string `json:"model"`
	// `chat.completion`
	Object string `json:"object"`
	// The id of the turn's prompt; absent outside a turn.
	PromptID string `json:"prompt_id,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// The program that wrote the stream; only in the handshake.
	SystemFingerprint string `json:"system_fingerprint,omitempty"`
	// Tokens: of the message, or in the terminal record of the whole turn.
	Usage *TokenUsage `json:"usage,omitempty"`
}

// ChatCompletionChunk: A `chat.completion.chunk` line.
type ChatCompletionChunk struct {
	// One piece; none in the handshake.
	Choices []ChunkChoice `json:"choices"`
	// Seconds since the Unix epoch.
	Created int64 `json:"created,omitempty"`
	// `chatcmpl-<session_id>`
	ID string `json:"id,omitempty"`
	// The handshake's announcement, an error, or the summary of a turn.
	Metadata *Metadata `json:"metadata,omitempty"`
	// The model that writes.
	Model string `json:"model,omitempty"`
	// `chat.completion.chunk`
	Object string `json:"object,omitempty"`
	// The id of the turn's prompt; absent outside a turn.
	PromptID string `json:"prompt_id,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// The program that wrote the stream; only in the handshake.
	SystemFingerprint string `json:"system_fingerprint,omitempty"`
	// Tokens: of the message in its last chunk, of the whole turn in the turn's last chunk.
	Usage *TokenUsage `json:"usage,omitempty"`
}

// ChatRequest: The Qwen Chat Request: input for the agent.
type ChatRequest struct {
	// True if the request continues the turn with the same `prompt_id`.
	Continuation bool `json:"continuation,omitempty"`
	// `queue` (the default) waits for the end of the running turn; `steer` joins it before its next model call.
	Delivery string `json:"delivery,omitempty"`
	// The origin and content of the request.
	Input RequestInput `json:"input"`
	// A model for this request only.
	Model string `json:"model,omitempty"`
	// Overrides for this request.
	Options *RequestOptions `json:"options,omitempty"`
	// The id of the prompt, unique in its session; by default `<session_id>########<turn>`.
	PromptID string `json:"prompt_id,omitempty"`
	// The protocol version that the host requires.
	ProtocolVersion string `json:"protocol_version,omitempty"`
	// The capabilities that the host requires.
	Requires []string `json:"requires,omitempty"`
	// True for a repeated prompt: it joins the turn with the same `prompt_id`.
	Resend bool `json:"resend,omitempty"`
	// The id of the session; `_new` creates one.
	SessionID string `json:"session_id,omitempty"`
	// The id of the tool call that is answered; required with origin `tool_response`.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// The tool call that is answered, as it was requested.
	ToolRequest *ToolRequest `json:"tool_request,omitempty"`
	// The host's W3C trace context, the parent of the turn's span; also accepted in `metadata`.
	Traceparent string `json:"traceparent,omitempty"`
	// Additional information about the request.
	Tracestate string `json:"tracestate,omitempty"`
}

// Choice: The one choice of a `chat.completion`.
type Choice struct {
	// `stop`, `tool_calls`, `length`, `content_filter` or `error`.
	FinishReason string `json:"finish_reason"`
	// The index of the choice; always 0.
	Index int64 `json:"index"`
	// The message that the line carries.
	Message AssistantMessage `json:"message"`
}

// ChunkChoice: The one choice of a chunk.
type ChunkChoice struct {
	// The increment of the message.
	Delta Delta `json:"delta"`
	// Null until the message's last chunk.
	FinishReason string `json:"finish_reason,omitempty"`
	// The index of the choice; always 0.
	Index int64 `json:"index,omitempty"`
}

// Values of ChunkObject: The literal `chat.completion.chunk`.
const (
	// `chat.completion.chunk`
	ChunkObjectChatCompletionChunk = "chat.completion.chunk"
)

// CommandLine: The result of a slash command.
type CommandLine struct {
	// The command as it was parsed.
	Command CommandName `json:"command"`
	// Features that are unavailable because there is no control channel.
	Limitation string `json:"limitation,omitempty"`
	// The id of the prompt that contained the command.
	PromptID string `json:"prompt_id"`
	// The outcome of the command.
	Result CommandOutcome `json:"result"`
	// The id of the session.
	SessionID string `json:"session_id"`
	// `result/command`
	Type string `json:"type"`
}

// CommandName: A parsed command with its arguments.
type CommandName struct {
	// The arguments as typed.
	Args string `json:"args,omitempty"`
	// `slash`, `at` or `help`
	Kind string `json:"kind"`
	// The command's name followed by the names of its subcommands.
	Path []string `json:"path"`
}

// CommandOutcome: The outcome of a command.
type CommandOutcome struct {
	// The text of a message, or the submitted prompt.
	Content string `json:"content,omitempty"`
	// The content of the dialog.
	Data json.RawMessage `json:"data,omitempty"`
	// The name of the dialog.
	Dialog string `json:"dialog,omitempty"`
	// The level of a message: `info`, `warning` or `error`.
	Level string `json:"level,omitempty"`
	// The tool that was run.
	Tool *ToolUse `json:"tool,omitempty"`
	// `message`, `dialog`, `tool` or `submit_prompt`
	Type string `json:"type"`
}

// Values of CommandType: The literal `result/command`.
const (
	// `result/command`
	CommandTypeResultCommand = "result/command"
)

// Values of CompletionObject: The literal `chat.completion`.
const (
	// `chat.completion`
	CompletionObjectChatCompletion = "chat.completion"
)

// CompletionTokens: Details of the completion tokens.
type CompletionTokens struct {
	// Tokens spent on thinking.
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// ConfirmationRecord: The content of a permission request. Which fields are set depends on the kind.
type ConfirmationRecord struct {
	// The command line.
	Command string `json:"command,omitempty"`
	// The unified diff.
	Diff string `json:"diff,omitempty"`
	// The path as displayed to users.
	FileName string `json:"file_name,omitempty"`
	// The absolute path of the file.
	FilePath string `json:"file_path,omitempty"`
	// The text after the change.
	Modified string `json:"modified,omitempty"`
	// The text before the change; null for a new file.
	Original string `json:"original,omitempty"`
	// The plan, in Markdown.
	Plan string `json:"plan,omitempty"`
	// A description of the call.
	Prompt string `json:"prompt,omitempty"`
	// The programs that the command starts.
	RootCommand string `json:"root_command,omitempty"`
	// The name of the MCP server.
	ServerName string `json:"server_name,omitempty"`
	// Line counts.
	Stat *LineCounts `json:"stat,omitempty"`
	// A title.
	Title string `json:"title,omitempty"`
	// The display name of the tool.
	ToolDisplayName string `json:"tool_display_name,omitempty"`
	// The name of the tool on its server.
	ToolName string `json:"tool_name,omitempty"`
	// Which of the kinds it is.
	Type string `json:"type"`
	// URLs that the call would fetch.
	Urls []string `json:"urls,omitempty"`
}

// ControlAnswer: A result or an error.
type ControlAnswer struct {
	// The error, if the request failed.
	Error *ControlError `json:"error,omitempty"`
	// The content of the response.
	Result json.RawMessage `json:"result,omitempty"`
	// `success` or `error`
	Subtype string `json:"subtype"`
}

// ControlCancelInput: A request on the control channel is withdrawn.
type ControlCancelInput struct {
	// The id of the control request.
	RequestID string `json:"request_id"`
	// Always the literal `control_cancel_request`.
	Type string `json:"type"`
}

// ControlCancelLine: A withdrawn control request.
type ControlCancelLine struct {
	// The id of the running turn's prompt.
	PromptID string `json:"prompt_id,omitempty"`
	// The id of the control request, repeated in its response.
	RequestID string `json:"request_id"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// `control_cancel_request`
	Type string `json:"type"`
}

// Values of ControlCancelType: The literal `control_cancel_request`.
const (
	// `control_cancel_request`
	ControlCancelTypeControlCancelRequest = "control_cancel_request"
)

// ControlError: The error of a control request.
type ControlError struct {
	// A stable identifier for programs.
	Code string `json:"code,omitempty"`
	// The error message for users.
	Message string `json:"message"`
	// True if a retry may succeed.
	Retryable bool `json:"retryable,omitempty"`
}

// ControlInput: A control request: flat, with `subtype` and its fields at the top level, or nested, with both in `request`.
type ControlInput struct {
	// Nested form: the request.
	Request *NestedRequest `json:"request,omitempty"`
	// The id of the request, repeated in the response.
	RequestID string `json:"request_id"`
	// Flat form: the kind of request, such as `interrupt`.
	Subtype string `json:"subtype,omitempty"`
	// `control_request`
	Type string `json:"type"`
}

// ControlMetadata: The reason for a permission request.
type ControlMetadata struct {
	// The id of the sub-agent that sent the request; absent for the main agent.
	AgentID string `json:"agent_id,omitempty"`
	// The path outside the workspace that caused the request, if one did.
	BlockedPath string `json:"blocked_path,omitempty"`
	// Information to display to the user.
	Confirmation *ConfirmationRecord `json:"confirmation,omitempty"`
	// The reason for the request.
	Reason string `json:"reason"`
	// The id of the tool call.
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// ControlRequestLine: A control request to the host, in the flat form.
type ControlRequestLine struct {
	// `hook_callback`: the id under which the host registered the hook.
	CallbackID string `json:"callback_id,omitempty"`
	// `hook_callback`: the input of the hook.
	Input json.RawMessage `json:"input,omitempty"`
	// `mcp_message`: the JSON-RPC message.
	Message json.RawMessage `json:"message,omitempty"`
	// `can_use_tool`: the reason for the request and information to display.
	Metadata *ControlMetadata `json:"metadata,omitempty"`
	// The id of the turn's prompt; absent outside a turn.
	PromptID string `json:"prompt_id,omitempty"`
	// The id of the control request, repeated in its response.
	RequestID string `json:"request_id"`
	// `mcp_message`: the name of the server.
	ServerName string `json:"server_name,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id"`
	// `can_use_tool`, `hook_callback` or `mcp_message`
	Subtype string `json:"subtype"`
	// `can_use_tool`: the arguments of the call.
	Tool *ToolUse `json:"tool,omitempty"`
	// `hook_callback`: the id of the tool call that it concerns.
	ToolUseID string `json:"tool_use_id,omitempty"`
	// `control_request`
	Type string `json:"type"`
}

// Values of ControlRequestType: The literal `control_request`.
const (
	// `control_request`
	ControlRequestTypeControlRequest = "control_request"
)

// ControlResponseLine: A response on the control channel, in the flat form.
type ControlResponseLine struct {
	// The id of the running turn's prompt.
	PromptID string `json:"prompt_id,omitempty"`
	// The id of the control request, repeated in its response.
	RequestID string `json:"request_id"`
	// The content of the response.
	Response ControlAnswer `json:"response"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// `control_response`
	Type string `json:"type"`
}

// Values of ControlResponseType: The literal `control_response`.
const (
	// `control_response`
	ControlResponseTypeControlResponse = "control_response"
)

// ConversationMessage: An entry of the conversation.
type ConversationMessage struct {
	// The content of the message.
	Content json.RawMessage `json:"content,omitempty"`
	// `system`, `developer`, `user`, `assistant` or `tool`
	Role string `json:"role"`
	// The id of the call that a tool message answers.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// The calls of an assistant message.
	ToolCalls []json.RawMessage `json:"tool_calls,omitempty"`
}

// ConversationRequest: The OpenAI request: a whole conversation, whose last user message is the prompt.
type ConversationRequest struct {
	// The messages of the conversation, oldest first.
	Messages []ConversationMessage `json:"messages"`
	// A model for this request only.
	Model string `json:"model,omitempty"`
	// The id of the turn's prompt.
	PromptID string `json:"prompt_id,omitempty"`
	// The id of the session; `_new` creates one.
	SessionID string `json:"session_id,omitempty"`
}

// DeclaredCommand: A parsed command with its arguments.
type DeclaredCommand struct {
	// The arguments as typed.
	Args string `json:"args,omitempty"`
	// `slash`, `at` or `help`
	Kind string `json:"kind"`
	// The command's name followed by the names of its subcommands.
	Path []string `json:"path"`
}

// Values of DeclaredKind: The kind of command.
const (
	// A command of the form `/name`.
	DeclaredKindSlash = "slash"
	// A reference of the form `@path`.
	DeclaredKindAt = "at"
	// The command `?`, which shows the help.
	DeclaredKindHelp = "help"
)

// Delta: The increment of a chunk.
type Delta struct {
	// The next piece of text.
	Content string `json:"content,omitempty"`
	// The role of the author; only in a message's first chunk.
	Role string `json:"role,omitempty"`
	// Increments of tool calls.
	ToolCalls []ToolCallDelta `json:"tool_calls,omitempty"`
}

// ErrorBody: An error in OpenAI's form.
type ErrorBody struct {
	// A stable identifier for programs.
	Code string `json:"code,omitempty"`
	// What was attempted, what failed, and what to do next.
	Message string `json:"message"`
	// The invalid field of the request.
	Param string `json:"param,omitempty"`
	// True if a retry may succeed.
	Retryable bool `json:"retryable,omitempty"`
	// The HTTP status code, if a server returned one.
	Status *int64 `json:"status,omitempty"`
	// The kind of error.
	Type string `json:"type"`
}

// FatalError: The line of a fatal error.
type FatalError struct {
	// The error, if the request failed.
	Error ErrorBody `json:"error"`
}

// FilePart: A medium given by its URL.
type FilePart struct {
	// The URL of the file.
	FileURI string `json:"file_uri"`
	// The MIME type of the data.
	MimeType string `json:"mime_type,omitempty"`
}

// FunctionCall: The function and its arguments.
type FunctionCall struct {
	// The arguments, a JSON object as text.
	Arguments string `json:"arguments"`
	// The name of the tool.
	Name string `json:"name"`
}

// FunctionDelta: An increment of a function call.
type FunctionDelta struct {
	// The next piece of the arguments as JSON text.
	Arguments string `json:"arguments,omitempty"`
	// The name of the tool; only in the first piece.
	Name string `json:"name,omitempty"`
}

// FunctionResponse: The result of a tool that the host ran.
type FunctionResponse struct {
	// The id of the call; by default the request's `tool_call_id`.
	ID string `json:"id,omitempty"`
	// The name of the tool.
	Name string `json:"name,omitempty"`
	// The result: a text, or an object with `output` or `error`.
	Response json.RawMessage `json:"response"`
}

// FunctionSchema: The function definition of a tool.
type FunctionSchema struct {
	// A description of the tool for the model.
	Description string `json:"description,omitempty"`
	// The name of the function.
	Name string `json:"name"`
	// The JSON Schema of its arguments.
	Parameters map[string]json.RawMessage `json:"parameters,omitempty"`
}

// Values of FunctionType: The kind of tool of a call.
const (
	// `function`
	FunctionTypeFunction = "function"
)

// HeartbeatLine: A heartbeat of the worker.
type HeartbeatLine struct {
	// The activity of the running turn: `thinking`, `tool`, or `waiting` while the host runs a tool.
	Activity string `json:"activity,omitempty"`
	// The id of the running turn's prompt.
	PromptID string `json:"prompt_id,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id"`
	// `ok`
	Status string `json:"status"`
	// The name of the tool that is running or that the host runs.
	Tool string `json:"tool,omitempty"`
	// Seconds since the Unix epoch.
	Ts int64 `json:"ts"`
	// `result/heartbeat`
	Type string `json:"type"`
}

// HeartbeatRequestLine: A request for a heartbeat.
type HeartbeatRequestLine struct {
	// The interval of periodic heartbeats in milliseconds; 0 stops them.
	IntervalMs *int64 `json:"interval_ms,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// `heartbeat_request`
	Type string `json:"type"`
}

// Values of HeartbeatRequestType: The literal `heartbeat_request`.
const (
	// `heartbeat_request`
	HeartbeatRequestTypeHeartbeatRequest = "heartbeat_request"
)

// Values of HeartbeatType: The literal `result/heartbeat`.
const (
	// `result/heartbeat`
	HeartbeatTypeResultHeartbeat = "result/heartbeat"
)

// HintCancelLine: Withdraws a request for suggestions.
type HintCancelLine struct {
	// The `prompt_id` of the request.
	PromptID string `json:"prompt_id,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// `command_hint_cancel`
	Type string `json:"type"`
}

// Values of HintCancelType: The literal `command_hint_cancel`.
const (
	// `command_hint_cancel`
	HintCancelTypeCommandHintCancel = "command_hint_cancel"
)

// HintContext: The context of the text that is being typed.
type HintContext struct {
	// The directory that paths are relative to.
	Cwd string `json:"cwd,omitempty"`
	// The text that is selected in the editor.
	SelectedText string `json:"selected_text,omitempty"`
}

// HintLine: Completions of the text that is being typed.
type HintLine struct {
	// The error, if there is one.
	Message string `json:"message,omitempty"`
	// Additional information about the suggestions.
	Metadata HintMetadata `json:"metadata"`
	// The `prompt_id` of the request.
	PromptID string `json:"prompt_id"`
	// The id of the session.
	SessionID string `json:"session_id"`
	// `ok`, `loading` or `error`
	Status string `json:"status"`
	// The suggestions, best first.
	Suggestions []SuggestionItem `json:"suggestions"`
	// `slash` or `at`
	Trigger string `json:"trigger"`
	// `result/command_hint`
	Type string `json:"type"`
}

// HintMetadata: Additional information about suggestions.
type HintMetadata struct {
	// True if the text already equals one of the suggestions.
	IsPerfectMatch bool `json:"is_perfect_match"`
}

// HintRequestLine: A request for suggestions.
type HintRequestLine struct {
	// The context of the text.
	Context *HintContext `json:"context,omitempty"`
	// The position of the cursor in characters.
	Cursor *int64 `json:"cursor,omitempty"`
	// The id of the request, repeated in the response.
	PromptID string `json:"prompt_id,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// The text so far.
	Text string `json:"text"`
	// `slash` or `at`; by default derived from the first character of the text.
	Trigger string `json:"trigger,omitempty"`
	// `command_hint_request`
	Type string `json:"type"`
}

// Values of HintRequestType: The literal `command_hint_request`.
const (
	// `command_hint_request`
	HintRequestTypeCommandHintRequest = "command_hint_request"
)

// Values of HintType: The literal `result/command_hint`.
const (
	// `result/command_hint`
	HintTypeResultCommandHint = "result/command_hint"
)

// HostTool: A tool that the host runs.
type HostTool struct {
	// The function definition of the tool.
	Function FunctionSchema `json:"function"`
	// `function`
	Type string `json:"type,omitempty"`
}

// InlinePart: A medium whose data is inside the message.
type InlinePart struct {
	// The bytes as base64.
	Data string `json:"data"`
	// The MIME type of the data.
	MimeType string `json:"mime_type,omitempty"`
}

// LineCounts: Line counts of a change.
type LineCounts struct {
	// Lines that the model added.
	AiAddedLines int64 `json:"ai_added_lines"`
	// Lines that the model removed.
	AiRemovedLines int64 `json:"ai_removed_lines"`
	// Lines that the user added while approving.
	UserAddedLines int64 `json:"user_added_lines"`
	// Lines that the user removed while approving.
	UserRemovedLines int64 `json:"user_removed_lines"`
}

// Metadata: Information beyond OpenAI's fields.
type Metadata struct {
	// The names of the supported capabilities; only in the handshake.
	Capabilities []string `json:"capabilities,omitempty"`
	// Failed control requests of the turn, also in its summary; only in its terminal record.
	ControlErrors []ErrorBody `json:"control_errors,omitempty"`
	// The error, or the limit that was reached.
	Error *ErrorBody `json:"error,omitempty"`
	// The input format; in the handshake.
	InputFormat string `json:"input_format,omitempty"`
	// The output format; in the handshake.
	OutputFormat string `json:"output_format,omitempty"`
	// The protocol's version; in the handshake.
	ProtocolVersion string `json:"protocol_version,omitempty"`
	// The session; in the handshake.
	SessionID string `json:"session_id,omitempty"`
	// The summary of the turn; only in its terminal record.
	Turn *TurnSummary `json:"turn,omitempty"`
}

// Metrics: Figures that belong to a notice.
type Metrics struct {
	// The attempt that failed, from 1.
	Attempt *int64 `json:"attempt,omitempty"`
	// The number of tokens after compaction.
	CompressedTokens *int64 `json:"compressed_tokens,omitempty"`
	// The delay before the next attempt in milliseconds.
	DelayMs *int64 `json:"delay_ms,omitempty"`
	// The limit that was reached.
	Limit *int64 `json:"limit,omitempty"`
	// The maximum number of retries.
	MaxRetries *int64 `json:"max_retries,omitempty"`
	// The number of tokens before compaction.
	OriginalTokens *int64 `json:"original_tokens,omitempty"`
	// The HTTP status of the failed attempt.
	Status *int64 `json:"status,omitempty"`
}

// ModelTokens: The usage of one model.
type ModelTokens struct {
	// The part of the prompt tokens served from the provider's cache.
	CachedTokens *int64 `json:"cached_tokens,omitempty"`
	// The number of calls to the model.
	Calls int64 `json:"calls"`
	// The number of output tokens.
	CompletionTokens int64 `json:"completion_tokens"`
	// The cost in US dollars; absent if the model's prices are unknown.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	// The number of input tokens.
	PromptTokens int64 `json:"prompt_tokens"`
	// The part of the completion tokens spent on thinking.
	ReasoningTokens *int64 `json:"reasoning_tokens,omitempty"`
	// The sum of both.
	TotalTokens int64 `json:"total_tokens"`
}

// NamedSchema: A JSON Schema and its name.
type NamedSchema struct {
	// A name for the schema, without effect.
	Name string `json:"name,omitempty"`
	// The JSON Schema of the result.
	Schema map[string]json.RawMessage `json:"schema"`
}

// NestedAnswer: A response in the nested form.
type NestedAnswer struct {
	// The error, if the request failed.
	Error string `json:"error,omitempty"`
	// The id of the control request, repeated in its response.
	RequestID string `json:"request_id"`
	// The content of the response.
	Response json.RawMessage `json:"response,omitempty"`
	// `success` or `error`
	Subtype string `json:"subtype"`
}

// NestedRequest: The request in the nested form.
type NestedRequest struct {
	// The kind of request, such as `interrupt`.
	Subtype string `json:"subtype"`
}

// NestedResponseLine: A response on the control channel in the nested form, used for requests in that form.
type NestedResponseLine struct {
	// The id of the running turn's prompt.
	PromptID string `json:"prompt_id,omitempty"`
	// The content of the response.
	Response NestedAnswer `json:"response"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// `control_response`
	Type string `json:"type"`
}

// Values of Origin: The origin of an input.
const (
	// The user, or a program acting for the user.
	OriginUser = "user"
	// A tool that the host ran.
	OriginToolResponse = "tool_response"
	// The host, adding context for the next turn.
	OriginSystem = "system"
)

// PermissionDenial: A tool call that was refused.
type PermissionDenial struct {
	// The arguments of the call, a JSON object.
	Arguments json.RawMessage `json:"arguments"`
	// The reason for the refusal.
	Reason string `json:"reason"`
	// The id of the tool call.
	ToolCallID string `json:"tool_call_id"`
	// The name of the tool.
	ToolName string `json:"tool_name"`
}

// PromptTokens: Details of the prompt tokens.
type PromptTokens struct {
	// Tokens newly written to the provider's cache.
	CacheWriteTokens *int64 `json:"cache_write_tokens,omitempty"`
	// Tokens served from the provider's cache.
	CachedTokens int64 `json:"cached_tokens"`
}

// RequestInput: The content of a request: its origin and its text or command.
type RequestInput struct {
	// A command given explicitly.
	Command *DeclaredCommand `json:"command,omitempty"`
	// The same as the top-level `continuation`, used if that is absent.
	Continuation bool `json:"continuation,omitempty"`
	// The origin; by default the user.
	Origin string `json:"origin,omitempty"`
	// The content; required unless there is a command.
	Parts json.RawMessage `json:"parts,omitempty"`
	// The same as the top-level `tool_call_id`, used if that is absent.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// The same as the top-level `tool_request`, used if that is absent.
	ToolRequest *ToolRequest `json:"tool_request,omitempty"`
}

// RequestOptions: Overrides for one request.
type RequestOptions struct {
	// The reasoning effort: `low`, `medium`, `high`, …
	Effort string `json:"effort,omitempty"`
	// The output limit in tokens.
	MaxTokens *int64 `json:"max_tokens,omitempty"`
	// The model for this request.
	Model string `json:"model,omitempty"`
	// The format of the result.
	ResponseFormat *ResponseFormat `json:"response_format,omitempty"`
	// The seed for repeatable sampling, if the provider supports it.
	Seed *int64 `json:"seed,omitempty"`
	// One or more stop sequences.
	Stop json.RawMessage `json:"stop,omitempty"`
	// The sampling temperature of the model.
	Temperature *float64 `json:"temperature,omitempty"`
	// An allow-list of tools for this request.
	ToolOverrides []string `json:"tool_overrides,omitempty"`
	// Tools that the host runs, as OpenAI function schemas.
	Tools []HostTool `json:"tools,omitempty"`
	// The nucleus sampling threshold.
	TopP *float64 `json:"top_p,omitempty"`
}

// RequestPart: A part of the content: a text, a tool result or a medium. `type` may be absent if the only other key identifies the kind.
type RequestPart struct {
	// A medium given by its URL.
	FileData *FilePart `json:"file_data,omitempty"`
	// The result of a tool that the host ran.
	FunctionResponse *FunctionResponse `json:"function_response,omitempty"`
	// An image in OpenAI's form: a URL, or an object with `url`.
	ImageURL json.RawMessage `json:"image_url,omitempty"`
	// A medium whose data is inside the message.
	InlineData *InlinePart `json:"inline_data,omitempty"`
	// An image or a document in Claude's form.
	Source map[string]json.RawMessage `json:"source,omitempty"`
	// The text of a text part.
	Text string `json:"text,omitempty"`
	// `text`, `function_response`, `file_data`, `inline_data`, `image_url`, `image`, `document` or `tool_result`
	Type string `json:"type,omitempty"`
}

// ResponseFormat: The format of a result, in OpenAI's form. Which fields are set depends on the kind.
type ResponseFormat struct {
	// The schema and its name.
	JSONSchema *NamedSchema `json:"json_schema,omitempty"`
	// Which of the kinds it is.
	Type string `json:"type"`
}

// ResultDisplay: The result of a tool for display. Which fields are set depends on the kind.
type ResultDisplay struct {
	// The sub-agent's name.
	Agent string `json:"agent,omitempty"`
	// The task given to the sub-agent.
	Description string `json:"description,omitempty"`
	// The unified diff.
	Diff string `json:"diff,omitempty"`
	// The path as displayed to users.
	FileName string `json:"file_name,omitempty"`
	// Which of the kinds it is.
	Kind string `json:"kind"`
	// A category for filtering: `tool`.
	LogScope string `json:"log_scope,omitempty"`
	// A one-line summary.
	Message string `json:"message,omitempty"`
	// The text after the change.
	Modified string `json:"modified,omitempty"`
	// The text before the change; null for a new file.
	Original string `json:"original,omitempty"`
	// The plan, in Markdown.
	Plan string `json:"plan,omitempty"`
	// The sub-agent's final report.
	Result string `json:"result,omitempty"`
	// Line counts.
	Stat *LineCounts `json:"stat,omitempty"`
	// `running`, `completed`, `failed` or `cancelled`
	Status string `json:"status,omitempty"`
	// The text of the block.
	Text string `json:"text,omitempty"`
	// The items of the list.
	Todos []TodoRecord `json:"todos,omitempty"`
	// The tokens used so far.
	Tokens int64 `json:"tokens,omitempty"`
	// The number of tool calls so far.
	ToolCalls int64 `json:"tool_calls,omitempty"`
}

// SessionEventRecord: A notice about the session.
type SessionEventRecord struct {
	// `Finished`, `ChatCompressed`, `MaxSessionTurns`, `USER_CANCELLED`, `MAX_TOKENS`, `Retry`, `ModelFallback`, `LoopDetected`, `ModeChanged`, `Steered` or `Custom`
	Event string `json:"event"`
	// A message for users about the event.
	Message string `json:"message,omitempty"`
	// Figures that belong to the event.
	Metrics *Metrics `json:"metrics,omitempty"`
	// The id of the tool call that started the sub-agent.
	ParentToolCallID string `json:"parent_tool_call_id,omitempty"`
	// The id of the turn's prompt; absent outside a turn. For `Steered` the id of the prompt that joins; `value.turn` is the turn.
	PromptID string `json:"prompt_id,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// `x-qwen-session-event`
	Type string `json:"type"`
	// The payload of a custom event.
	Value json.RawMessage `json:"value,omitempty"`
}

// Values of SessionEventType: The literal `x-qwen-session-event`.
const (
	// `x-qwen-session-event`
	SessionEventTypeXQwenSessionEvent = "x-qwen-session-event"
)

// Span: A styled range, counted in Unicode scalar values of the record's text.
type Span struct {
	// The position after the last character.
	End int64 `json:"end"`
	// The position of the first character.
	Start int64 `json:"start"`
	// The style of the range.
	Style SpanStyle `json:"style"`
}

// SpanStyle: The style of a range.
type SpanStyle struct {
	// The name of a colour in the theme, such as `AccentGreen`.
	ThemeToken string `json:"theme_token"`
}

// SuggestionItem: A completion of the text that is being typed.
type SuggestionItem struct {
	// A description of the suggestion.
	Description string `json:"description,omitempty"`
	// The text to display.
	Label string `json:"label"`
	// The text to insert.
	Value string `json:"value"`
}

// TerminalRecord: Terminal output: a tool's output, a log line, or the end of a run.
type TerminalRecord struct {
	// The removed escape sequences with their positions.
	Ansi []AnsiCode `json:"ansi,omitempty"`
	// `stdout` or `stderr`
	Channel string `json:"channel"`
	// The level of a console line.
	ConsoleLevel string `json:"console_level,omitempty"`
	// The exit code of the run; only if the source is `system`.
	ExitCode *int64 `json:"exit_code,omitempty"`
	// The origin of the output: `system`, `tool` or `debug`.
	LogScope string `json:"log_scope,omitempty"`
	// The id of the tool call that started the sub-agent whose tool wrote.
	ParentToolCallID string `json:"parent_tool_call_id,omitempty"`
	// The id of the turn's prompt; absent outside a turn.
	PromptID string `json:"prompt_id,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// `assistant`, `tool`, `console` or `system`
	Source string `json:"source"`
	// Styled ranges of `text`.
	Spans []Span `json:"spans,omitempty"`
	// The output without escape sequences.
	Text string `json:"text,omitempty"`
	// The id of the tool call that wrote.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// `x-qwen-terminal`
	Type string `json:"type"`
}

// Values of TerminalType: The literal `x-qwen-terminal`.
const (
	// `x-qwen-terminal`
	TerminalTypeXQwenTerminal = "x-qwen-terminal"
)

// ThoughtRecord: A thought of the model.
type ThoughtRecord struct {
	// The text of the thought.
	Description string `json:"description"`
	// The id of the tool call that started the sub-agent.
	ParentToolCallID string `json:"parent_tool_call_id,omitempty"`
	// The id of the turn's prompt.
	PromptID string `json:"prompt_id,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// The subject of the thought.
	Subject string `json:"subject"`
	// `x-qwen-thought`
	Type string `json:"type"`
}

// Values of ThoughtType: The literal `x-qwen-thought`.
const (
	// `x-qwen-thought`
	ThoughtTypeXQwenThought = "x-qwen-thought"
)

// TodoRecord: An item of a to-do list.
type TodoRecord struct {
	// The text of the item.
	Content string `json:"content"`
	// The id of the item.
	ID string `json:"id"`
	// `pending`, `in_progress` or `completed`
	Status string `json:"status"`
}

// TokenUsage: Token counts under OpenAI's names.
type TokenUsage struct {
	// Tokens written by the model.
	CompletionTokens int64 `json:"completion_tokens"`
	// Details of the completion tokens.
	CompletionTokensDetails *CompletionTokens `json:"completion_tokens_details,omitempty"`
	// True if the provider reported no usage and the counts are estimates.
	Estimated bool `json:"estimated,omitempty"`
	// Tokens read by the model.
	PromptTokens int64 `json:"prompt_tokens"`
	// Details of the prompt tokens.
	PromptTokensDetails *PromptTokens `json:"prompt_tokens_details,omitempty"`
	// The sum of both.
	TotalTokens int64 `json:"total_tokens"`
}

// ToolCallDelta: Increments of tool calls.
type ToolCallDelta struct {
	// The function that is called.
	Function FunctionDelta `json:"function"`
	// The id of the call; only in its first piece.
	ID string `json:"id,omitempty"`
	// The index of the call in its message.
	Index int64 `json:"index"`
	// `function`; only in the first piece.
	Type string `json:"type,omitempty"`
}

// ToolDisplayRecord: The state of a tool call.
type ToolDisplayRecord struct {
	// The content of the permission request while it is open.
	Confirmation *ConfirmationRecord `json:"confirmation,omitempty"`
	// The id of the tool call that started the sub-agent.
	ParentToolCallID string `json:"parent_tool_call_id,omitempty"`
	// The call has not started.
	Pending bool `json:"pending,omitempty"`
	// The id of the turn's prompt.
	PromptID string `json:"prompt_id,omitempty"`
	// The result for display.
	ResultDisplay *ResultDisplay `json:"result_display,omitempty"`
	// The id of the session.
	SessionID string `json:"session_id,omitempty"`
	// `pending`, `confirming`, `executing`, `success`, `error` or `canceled`
	Status string `json:"status"`
	// Seconds since the Unix epoch.
	Timestamp int64 `json:"timestamp"`
	// The id of the tool call.
	ToolCallID string `json:"tool_call_id"`
	// The name of the tool.
	ToolName string `json:"tool_name,omitempty"`
	// `x-qwen-tool-display`
	Type string `json:"type"`
}

// Values of ToolDisplayType: The literal `x-qwen-tool-display`.
const (
	// `x-qwen-tool-display`
	ToolDisplayTypeXQwenToolDisplay = "x-qwen-tool-display"
)

// ToolRequest: A tool call as it was requested.
type ToolRequest struct {
	// The arguments of the call, a JSON object.
	Args map[string]json.RawMessage `json:"args,omitempty"`
	// The id of the tool call.
	CallId string `json:"callId,omitempty"`
	// The name of the tool.
	Name string `json:"name,omitempty"`
}

// ToolUse: A tool and its arguments.
type ToolUse struct {
	// The arguments of the call, a JSON object.
	Arguments map[string]json.RawMessage `json:"arguments"`
	// The name of the tool.
	Name string `json:"name"`
}

// Values of Trigger: The trigger of suggestions.
const (
	// The character `/`, for commands.
	TriggerSlash = "slash"
	// The character `@`, for files.
	TriggerAt = "at"
)

// TurnSummary: The summary of a turn.
type TurnSummary struct {
	// True if the turn continued one that had ended under the same `prompt_id`.
	Continuation bool `json:"continuation,omitempty"`
	// The control requests of the turn that failed.
	ControlErrors []ErrorBody `json:"control_errors,omitempty"`
	// The duration of the turn in milliseconds.
	DurationMs int64 `json:"duration_ms"`
	// The number of model calls.
	ModelCalls int64 `json:"model_calls"`
	// The tool calls that were refused.
	PermissionDenials []PermissionDenial `json:"permission_denials"`
	// `done`, `error`, `cancelled`, `interrupted` or the limit that was reached.
	Status string `json:"status"`
	// The validated structured output, if a schema was given.
	StructuredOutput json.RawMessage `json:"structured_output,omitempty"`
	// The number of tool calls.
	ToolCalls int64 `json:"tool_calls"`
	// The part of the turn that sub-agents spent, by name; absent without sub-agents.
	UsageByAgent map[string]AgentTokens `json:"usage_by_agent,omitempty"`
	// The usage of the turn by model.
	UsageByModel map[string]ModelTokens `json:"usage_by_model"`
}

// UserLine: The user line of the Claude and Qwen Code SDKs.
type UserLine struct {
	// The message of the user.
	Message UserMessage `json:"message"`
	// Ignored: the line belongs to the running session.
	SessionID string `json:"session_id,omitempty"`
	// The host's W3C trace context, the parent of the turn's span.
	Traceparent string `json:"traceparent,omitempty"`
	// Additional information about the request.
	Tracestate string `json:"tracestate,omitempty"`
	// `user`
	Type string `json:"type"`
	// The client's own id of the message.
	UUID string `json:"uuid,omitempty"`
}

// UserMessage: A message of the user.
type UserMessage struct {
	// A plain text or a list of blocks.
	Content json.RawMessage `json:"content"`
	// Always the literal `user`.
	Role string `json:"role"`
}

// Values of UserType: The literal `user`.
const (
	// `user`
	UserTypeUser = "user"
)

// WireToolCall: A complete tool call.
type WireToolCall struct {
	// The function that is called.
	Function FunctionCall `json:"function"`
	// The id of the call, unique in its session.
	ID string `json:"id"`
	// Always the literal `function`.
	Type string `json:"type"`
}
