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

// AnsiCode: An escape sequence that was removed.
type AnsiCode struct {
	// The sequence as it was.
	Code string `json:"code"`
	// Where it stood, in Unicode scalar values of the record's text.
	Offset int64 `json:"offset"`
}

// AssistantMessage: What the model said.
type AssistantMessage struct {
	// The text; absent when there are only calls.
	Content string `json:"content,omitempty"`
	// `assistant`
	Role string `json:"role"`
	// The calls.
	ToolCalls []WireToolCall `json:"tool_calls,omitempty"`
}

// Values of AssistantRole: Who writes.
const (
	// `assistant`
	AssistantRoleAssistant = "assistant"
)

// CancelLine: The end of a cancel request.
type CancelLine struct {
	// What happened, in a sentence.
	Message string `json:"message,omitempty"`
	// The turn or queued prompt that was meant.
	PromptID string `json:"prompt_id,omitempty"`
	// The reason that the request gave.
	Reason string `json:"reason,omitempty"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// `ok`, or `noop` where there was nothing to cancel.
	Status string `json:"status"`
	// `result/cancel`
	Type string `json:"type"`
}

// CancelRequestLine: Stop what you are doing.
type CancelRequestLine struct {
	// The turn or queued prompt that is meant; absent means whatever runs.
	PromptID string `json:"prompt_id,omitempty"`
	// Why; by default `escape`.
	Reason string `json:"reason,omitempty"`
	// Where an answer on the control channel is wanted too.
	RequestID string `json:"request_id,omitempty"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// `control/cancel`
	Type string `json:"type"`
}

// Values of CancelRequestType: What asks us to stop.
const (
	// `control/cancel`
	CancelRequestTypeControlCancel = "control/cancel"
)

// Values of CancelType: What the end of a cancel request says it is.
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
	// The turn; absent outside one.
	PromptID string `json:"prompt_id,omitempty"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// Which program wrote the stream; only in the handshake.
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
	// The turn; absent outside one.
	PromptID string `json:"prompt_id,omitempty"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// Which program wrote the stream; only in the handshake.
	SystemFingerprint string `json:"system_fingerprint,omitempty"`
	// Tokens: of the message in its last chunk, of the whole turn in the turn's last chunk.
	Usage *TokenUsage `json:"usage,omitempty"`
}

// ChatRequest: The Qwen Chat Request: something said to the agent.
type ChatRequest struct {
	// It continues the turn of the same `prompt_id`.
	Continuation bool `json:"continuation,omitempty"`
	// `queue` (the default) waits for the end of the running turn; `steer` joins it before its next model call.
	Delivery string `json:"delivery,omitempty"`
	// What is said.
	Input RequestInput `json:"input"`
	// Another model for this request.
	Model string `json:"model,omitempty"`
	// Overrides for this request.
	Options *RequestOptions `json:"options,omitempty"`
	// The turn; by default `<session_id>########<turn>`.
	PromptID string `json:"prompt_id,omitempty"`
	// The protocol version that the host relies on.
	ProtocolVersion string `json:"protocol_version,omitempty"`
	// Capabilities that the host relies on.
	Requires []string `json:"requires,omitempty"`
	// The prompt is sent again: it joins the turn of the same `prompt_id`.
	Resend bool `json:"resend,omitempty"`
	// The session; `_new` asks for a new one.
	SessionID string `json:"session_id,omitempty"`
	// The call that is answered; needed where the origin is `tool_response`.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// The call that is answered, as it was asked for.
	ToolRequest *ToolRequest `json:"tool_request,omitempty"`
	// The host's place in a trace (W3C Trace Context), under which the turn belongs; may stand in `metadata` too.
	Traceparent string `json:"traceparent,omitempty"`
	// What goes with it.
	Tracestate string `json:"tracestate,omitempty"`
}

// Choice: The one choice of a `chat.completion`.
type Choice struct {
	// `stop`, `tool_calls`, `length`, `content_filter` or `error`.
	FinishReason string `json:"finish_reason"`
	// Always 0.
	Index int64 `json:"index"`
	// The message.
	Message AssistantMessage `json:"message"`
}

// ChunkChoice: The one choice of a chunk.
type ChunkChoice struct {
	// What is new.
	Delta Delta `json:"delta"`
	// Null until the message's last chunk.
	FinishReason string `json:"finish_reason,omitempty"`
	// Always 0.
	Index int64 `json:"index,omitempty"`
}

// Values of ChunkObject: What a chunk says it is.
const (
	// `chat.completion.chunk`
	ChunkObjectChatCompletionChunk = "chat.completion.chunk"
)

// CommandLine: The end of a command.
type CommandLine struct {
	// The command as it was understood.
	Command CommandName `json:"command"`
	// What the host cannot do in this run, because there is no control channel.
	Limitation string `json:"limitation,omitempty"`
	// The prompt that held the command.
	PromptID string `json:"prompt_id"`
	// What came of it.
	Result CommandOutcome `json:"result"`
	// The session.
	SessionID string `json:"session_id"`
	// `result/command`
	Type string `json:"type"`
}

// CommandName: A command and its arguments.
type CommandName struct {
	// The rest, as typed.
	Args string `json:"args,omitempty"`
	// `slash`, `at` or `help`
	Kind string `json:"kind"`
	// Its name and sub-names.
	Path []string `json:"path"`
}

// CommandOutcome: What came of a command.
type CommandOutcome struct {
	// The words of a message, or the prompt that is submitted.
	Content string `json:"content,omitempty"`
	// What the dialog shows.
	Data json.RawMessage `json:"data,omitempty"`
	// The name of the dialog.
	Dialog string `json:"dialog,omitempty"`
	// How loud a message is: `info`, `warning` or `error`.
	Level string `json:"level,omitempty"`
	// The tool that was run.
	Tool *ToolUse `json:"tool,omitempty"`
	// `message`, `dialog`, `tool` or `submit_prompt`
	Type string `json:"type"`
}

// Values of CommandType: What the end of a command says it is.
const (
	// `result/command`
	CommandTypeResultCommand = "result/command"
)

// Values of CompletionObject: What a message-level line says it is.
const (
	// `chat.completion`
	CompletionObjectChatCompletion = "chat.completion"
)

// CompletionTokens: Of the completion's tokens.
type CompletionTokens struct {
	// Those spent on thinking.
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// ConfirmationRecord: What someone is asked to agree to. Which fields are set depends on the kind.
type ConfirmationRecord struct {
	// The command line.
	Command string `json:"command,omitempty"`
	// The unified diff.
	Diff string `json:"diff,omitempty"`
	// The path as people know it.
	FileName string `json:"file_name,omitempty"`
	// The absolute path.
	FilePath string `json:"file_path,omitempty"`
	// The text after.
	Modified string `json:"modified,omitempty"`
	// The text before; null when the file is new.
	Original string `json:"original,omitempty"`
	// The plan, in Markdown.
	Plan string `json:"plan,omitempty"`
	// What will happen.
	Prompt string `json:"prompt,omitempty"`
	// The programs that it starts.
	RootCommand string `json:"root_command,omitempty"`
	// The server.
	ServerName string `json:"server_name,omitempty"`
	// Line counts.
	Stat *LineCounts `json:"stat,omitempty"`
	// A heading.
	Title string `json:"title,omitempty"`
	// The tool's name for people.
	ToolDisplayName string `json:"tool_display_name,omitempty"`
	// The tool's name there.
	ToolName string `json:"tool_name,omitempty"`
	// Which of the kinds it is.
	Type string `json:"type"`
	// Addresses that will be visited.
	Urls []string `json:"urls,omitempty"`
}

// ControlAnswer: An answer, or why there is none.
type ControlAnswer struct {
	// Why there is none.
	Error *ControlError `json:"error,omitempty"`
	// The answer.
	Result json.RawMessage `json:"result,omitempty"`
	// `success` or `error`
	Subtype string `json:"subtype"`
}

// ControlCancelInput: A request on the control channel is withdrawn.
type ControlCancelInput struct {
	// The request's id.
	RequestID string `json:"request_id"`
	// `control_cancel_request`
	Type string `json:"type"`
}

// ControlCancelLine: A question of ours that no longer matters.
type ControlCancelLine struct {
	// The turn under way.
	PromptID string `json:"prompt_id,omitempty"`
	// The question's id.
	RequestID string `json:"request_id"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// `control_cancel_request`
	Type string `json:"type"`
}

// Values of ControlCancelType: What a withdrawn question says it is.
const (
	// `control_cancel_request`
	ControlCancelTypeControlCancelRequest = "control_cancel_request"
)

// ControlError: Why there is no answer.
type ControlError struct {
	// A stable word for programs.
	Code string `json:"code,omitempty"`
	// What went wrong.
	Message string `json:"message"`
	// Whether trying again may help.
	Retryable bool `json:"retryable,omitempty"`
}

// ControlInput: A request on the control channel: flat, with `subtype` and its fields beside it, or nested, with both in `request`.
type ControlInput struct {
	// Nested: what is asked.
	Request *NestedRequest `json:"request,omitempty"`
	// The request's id, to be repeated in the answer.
	RequestID string `json:"request_id"`
	// Flat: what is asked, such as `interrupt`.
	Subtype string `json:"subtype,omitempty"`
	// `control_request`
	Type string `json:"type"`
}

// ControlMetadata: Why we ask whether a call may run.
type ControlMetadata struct {
	// The sub-agent that asks.
	AgentID string `json:"agent_id,omitempty"`
	// The path that is out of bounds, where that is the reason.
	BlockedPath string `json:"blocked_path,omitempty"`
	// What a person may be shown.
	Confirmation *ConfirmationRecord `json:"confirmation,omitempty"`
	// Why we ask.
	Reason string `json:"reason"`
	// The call.
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// ControlRequestLine: A question on the control channel.
type ControlRequestLine struct {
	// `hook_callback`: the host's name for its function.
	CallbackID string `json:"callback_id,omitempty"`
	// `hook_callback`: what the function is told.
	Input json.RawMessage `json:"input,omitempty"`
	// `mcp_message`: the JSON-RPC message.
	Message json.RawMessage `json:"message,omitempty"`
	// `can_use_tool`: why we ask, and what a person may be shown.
	Metadata *ControlMetadata `json:"metadata,omitempty"`
	// The turn; absent outside one.
	PromptID string `json:"prompt_id,omitempty"`
	// The question's id, to be repeated in the answer.
	RequestID string `json:"request_id"`
	// `mcp_message`: the server.
	ServerName string `json:"server_name,omitempty"`
	// The session.
	SessionID string `json:"session_id"`
	// `can_use_tool`, `hook_callback` or `mcp_message`
	Subtype string `json:"subtype"`
	// `can_use_tool`: what wants to run.
	Tool *ToolUse `json:"tool,omitempty"`
	// `hook_callback`: the call that it is about.
	ToolUseID string `json:"tool_use_id,omitempty"`
	// `control_request`
	Type string `json:"type"`
}

// Values of ControlRequestType: What a question on the control channel says it is.
const (
	// `control_request`
	ControlRequestTypeControlRequest = "control_request"
)

// ControlResponseLine: An answer on the control channel, in the flat form.
type ControlResponseLine struct {
	// The turn under way.
	PromptID string `json:"prompt_id,omitempty"`
	// The question's id.
	RequestID string `json:"request_id"`
	// The answer.
	Response ControlAnswer `json:"response"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// `control_response`
	Type string `json:"type"`
}

// Values of ControlResponseType: What an answer on the control channel says it is.
const (
	// `control_response`
	ControlResponseTypeControlResponse = "control_response"
)

// ConversationMessage: An entry of the conversation.
type ConversationMessage struct {
	// What is said.
	Content json.RawMessage `json:"content,omitempty"`
	// `system`, `developer`, `user`, `assistant` or `tool`
	Role string `json:"role"`
	// The call that a tool message answers.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// The calls of an assistant message.
	ToolCalls []json.RawMessage `json:"tool_calls,omitempty"`
}

// ConversationRequest: The OpenAI request: a whole conversation, whose last user message is the prompt.
type ConversationRequest struct {
	// The conversation.
	Messages []ConversationMessage `json:"messages"`
	// Another model for this request.
	Model string `json:"model,omitempty"`
	// The turn.
	PromptID string `json:"prompt_id,omitempty"`
	// The session; `_new` asks for a new one.
	SessionID string `json:"session_id,omitempty"`
}

// DeclaredCommand: A command and its arguments.
type DeclaredCommand struct {
	// The rest, as typed.
	Args string `json:"args,omitempty"`
	// `slash`, `at` or `help`
	Kind string `json:"kind"`
	// Its name and sub-names.
	Path []string `json:"path"`
}

// Values of DeclaredKind: What kind of command.
const (
	// `/name`
	DeclaredKindSlash = "slash"
	// `@path`
	DeclaredKindAt = "at"
	// `?`
	DeclaredKindHelp = "help"
)

// Delta: What is new in a chunk.
type Delta struct {
	// More text.
	Content string `json:"content,omitempty"`
	// Who writes; in a message's first chunk.
	Role string `json:"role,omitempty"`
	// More of a call.
	ToolCalls []ToolCallDelta `json:"tool_calls,omitempty"`
}

// ErrorBody: An error in OpenAI's form.
type ErrorBody struct {
	// A stable word for programs.
	Code string `json:"code,omitempty"`
	// What was asked, what went wrong, what to do.
	Message string `json:"message"`
	// The field that was wrong.
	Param string `json:"param,omitempty"`
	// Whether trying again may help.
	Retryable bool `json:"retryable,omitempty"`
	// The HTTP status, where a server gave one.
	Status *int64 `json:"status,omitempty"`
	// What kind of error.
	Type string `json:"type"`
}

// FatalError: The line of a fatal error.
type FatalError struct {
	// What went wrong.
	Error ErrorBody `json:"error"`
}

// FilePart: A medium at an address.
type FilePart struct {
	// The address.
	FileURI string `json:"file_uri"`
	// Its type.
	MimeType string `json:"mime_type,omitempty"`
}

// FunctionCall: What is called, and with what.
type FunctionCall struct {
	// The arguments, a JSON object as text.
	Arguments string `json:"arguments"`
	// The tool.
	Name string `json:"name"`
}

// FunctionDelta: More of what is called.
type FunctionDelta struct {
	// More of the arguments' text.
	Arguments string `json:"arguments,omitempty"`
	// The tool; in the first piece.
	Name string `json:"name,omitempty"`
}

// FunctionResponse: A tool's answer.
type FunctionResponse struct {
	// The call; by default the request's `tool_call_id`.
	ID string `json:"id,omitempty"`
	// The tool.
	Name string `json:"name,omitempty"`
	// What it gave back: a text, or an object with `output` or `error`.
	Response json.RawMessage `json:"response"`
}

// FunctionSchema: A tool as the model is told about it.
type FunctionSchema struct {
	// What it does.
	Description string `json:"description,omitempty"`
	// Its name.
	Name string `json:"name"`
	// The JSON Schema of its arguments.
	Parameters map[string]json.RawMessage `json:"parameters,omitempty"`
}

// Values of FunctionType: What kind of tool a call names.
const (
	// `function`
	FunctionTypeFunction = "function"
)

// HeartbeatLine: A sign of life.
type HeartbeatLine struct {
	// What the turn under way is doing: `thinking`, `tool`, or `waiting` for the host to run one.
	Activity string `json:"activity,omitempty"`
	// The turn under way.
	PromptID string `json:"prompt_id,omitempty"`
	// The session.
	SessionID string `json:"session_id"`
	// `ok`
	Status string `json:"status"`
	// The tool that runs, or is waited for.
	Tool string `json:"tool,omitempty"`
	// Seconds since the Unix epoch.
	Ts int64 `json:"ts"`
	// `result/heartbeat`
	Type string `json:"type"`
}

// HeartbeatRequestLine: Are you there?
type HeartbeatRequestLine struct {
	// From now on send one every so many milliseconds; 0 stops that.
	IntervalMs *int64 `json:"interval_ms,omitempty"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// `heartbeat_request`
	Type string `json:"type"`
}

// Values of HeartbeatRequestType: What asks for a sign of life.
const (
	// `heartbeat_request`
	HeartbeatRequestTypeHeartbeatRequest = "heartbeat_request"
)

// Values of HeartbeatType: What a heartbeat says it is.
const (
	// `result/heartbeat`
	HeartbeatTypeResultHeartbeat = "result/heartbeat"
)

// HintCancelLine: The suggestions asked for are no longer wanted.
type HintCancelLine struct {
	// The prompt id of the request.
	PromptID string `json:"prompt_id,omitempty"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// `command_hint_cancel`
	Type string `json:"type"`
}

// Values of HintCancelType: What withdraws a request for suggestions.
const (
	// `command_hint_cancel`
	HintCancelTypeCommandHintCancel = "command_hint_cancel"
)

// HintContext: Where something is typed.
type HintContext struct {
	// The directory that paths are relative to.
	Cwd string `json:"cwd,omitempty"`
	// What is selected.
	SelectedText string `json:"selected_text,omitempty"`
}

// HintLine: Suggestions for what is being typed.
type HintLine struct {
	// What went wrong.
	Message string `json:"message,omitempty"`
	// What goes beside them.
	Metadata HintMetadata `json:"metadata"`
	// The request's prompt id.
	PromptID string `json:"prompt_id"`
	// The session.
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

// HintMetadata: What goes beside suggestions.
type HintMetadata struct {
	// The text already names one of them exactly.
	IsPerfectMatch bool `json:"is_perfect_match"`
}

// HintRequestLine: What could be typed here?
type HintRequestLine struct {
	// Where it is typed.
	Context *HintContext `json:"context,omitempty"`
	// Where the cursor is, in characters.
	Cursor *int64 `json:"cursor,omitempty"`
	// The request's own prompt id, to be repeated in the answer.
	PromptID string `json:"prompt_id,omitempty"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// The text so far.
	Text string `json:"text"`
	// `slash` or `at`; by default what the text starts with.
	Trigger string `json:"trigger,omitempty"`
	// `command_hint_request`
	Type string `json:"type"`
}

// Values of HintRequestType: What a request for suggestions says it is.
const (
	// `command_hint_request`
	HintRequestTypeCommandHintRequest = "command_hint_request"
)

// Values of HintType: What suggestions say they are.
const (
	// `result/command_hint`
	HintTypeResultCommandHint = "result/command_hint"
)

// HostTool: A tool that the host runs.
type HostTool struct {
	// The tool.
	Function FunctionSchema `json:"function"`
	// `function`
	Type string `json:"type,omitempty"`
}

// InlinePart: A medium in line.
type InlinePart struct {
	// Its bytes, as base64.
	Data string `json:"data"`
	// Its type.
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

// Metadata: What goes beside the OpenAI fields.
type Metadata struct {
	// What a host may rely on, by name; in the handshake.
	Capabilities []string `json:"capabilities,omitempty"`
	// Control requests of the turn that went wrong, also in its summary; only in its terminal record.
	ControlErrors []ErrorBody `json:"control_errors,omitempty"`
	// What went wrong, or which limit was reached.
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

// Metrics: Numbers that go with a notice.
type Metrics struct {
	// The attempt that failed, from 1.
	Attempt *int64 `json:"attempt,omitempty"`
	// Tokens after compression.
	CompressedTokens *int64 `json:"compressed_tokens,omitempty"`
	// How long we wait before the next attempt.
	DelayMs *int64 `json:"delay_ms,omitempty"`
	// The limit that was reached.
	Limit *int64 `json:"limit,omitempty"`
	// How many retries there may be.
	MaxRetries *int64 `json:"max_retries,omitempty"`
	// Tokens before compression.
	OriginalTokens *int64 `json:"original_tokens,omitempty"`
	// The HTTP status of the failed attempt.
	Status *int64 `json:"status,omitempty"`
}

// ModelTokens: What one model spent.
type ModelTokens struct {
	// Of the prompt's tokens, those served from the provider's cache.
	CachedTokens *int64 `json:"cached_tokens,omitempty"`
	// Calls made to it.
	Calls int64 `json:"calls"`
	// Tokens written by it.
	CompletionTokens int64 `json:"completion_tokens"`
	// The price in US dollars, when prices are known.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	// Tokens read by it.
	PromptTokens int64 `json:"prompt_tokens"`
	// Of the completion's tokens, those spent on thinking.
	ReasoningTokens *int64 `json:"reasoning_tokens,omitempty"`
	// Both together.
	TotalTokens int64 `json:"total_tokens"`
}

// NamedSchema: A JSON Schema and its name.
type NamedSchema struct {
	// A name for it, which changes nothing.
	Name string `json:"name,omitempty"`
	// The schema.
	Schema map[string]json.RawMessage `json:"schema"`
}

// NestedAnswer: An answer in the nested form.
type NestedAnswer struct {
	// Why there is none.
	Error string `json:"error,omitempty"`
	// The question's id.
	RequestID string `json:"request_id"`
	// The answer.
	Response json.RawMessage `json:"response,omitempty"`
	// `success` or `error`
	Subtype string `json:"subtype"`
}

// NestedRequest: What is asked, in the nested form.
type NestedRequest struct {
	// What is asked, such as `interrupt`.
	Subtype string `json:"subtype"`
}

// NestedResponseLine: An answer on the control channel, in the nested form; whoever asked in it is answered in it.
type NestedResponseLine struct {
	// The turn under way.
	PromptID string `json:"prompt_id,omitempty"`
	// The answer.
	Response NestedAnswer `json:"response"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// `control_response`
	Type string `json:"type"`
}

// Values of Origin: Who speaks.
const (
	// A person or the program that acts for one.
	OriginUser = "user"
	// A tool that the host ran.
	OriginToolResponse = "tool_response"
	// The host, giving context for the next turn.
	OriginSystem = "system"
)

// PermissionDenial: A call that was refused.
type PermissionDenial struct {
	// What it wanted to do.
	Arguments json.RawMessage `json:"arguments"`
	// Why it was refused.
	Reason string `json:"reason"`
	// The call.
	ToolCallID string `json:"tool_call_id"`
	// The tool.
	ToolName string `json:"tool_name"`
}

// PromptTokens: Of the prompt's tokens.
type PromptTokens struct {
	// Those newly written to it.
	CacheWriteTokens *int64 `json:"cache_write_tokens,omitempty"`
	// Those served from the provider's cache.
	CachedTokens int64 `json:"cached_tokens"`
}

// RequestInput: What is said.
type RequestInput struct {
	// A command declared as such.
	Command *DeclaredCommand `json:"command,omitempty"`
	// The same as `continuation` beside `input`, where that has none.
	Continuation bool `json:"continuation,omitempty"`
	// Who speaks; by default the user.
	Origin string `json:"origin,omitempty"`
	// What is said; needed unless there is a command.
	Parts json.RawMessage `json:"parts,omitempty"`
	// The same as `tool_call_id` beside `input`, where that has none.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// The same as `tool_request` beside `input`, where that has none.
	ToolRequest *ToolRequest `json:"tool_request,omitempty"`
}

// RequestOptions: Overrides for one request.
type RequestOptions struct {
	// How hard the model thinks: `low`, `medium`, `high`, …
	Effort string `json:"effort,omitempty"`
	// The longest answer, in tokens.
	MaxTokens *int64 `json:"max_tokens,omitempty"`
	// Another model.
	Model string `json:"model,omitempty"`
	// The form of the result.
	ResponseFormat *ResponseFormat `json:"response_format,omitempty"`
	// Makes sampling repeatable, where the provider can.
	Seed *int64 `json:"seed,omitempty"`
	// A text, or texts, at which the model stops.
	Stop json.RawMessage `json:"stop,omitempty"`
	// How freely the model samples.
	Temperature *float64 `json:"temperature,omitempty"`
	// Only these tools may be used.
	ToolOverrides []string `json:"tool_overrides,omitempty"`
	// Tools that the host runs, as OpenAI function schemas.
	Tools []HostTool `json:"tools,omitempty"`
	// How much of the probability it samples from.
	TopP *float64 `json:"top_p,omitempty"`
}

// RequestPart: A piece of what is said: a text, a tool's answer, or a medium. `type` may be left out where the one other key says what it is.
type RequestPart struct {
	// A medium at an address.
	FileData *FilePart `json:"file_data,omitempty"`
	// A tool's answer.
	FunctionResponse *FunctionResponse `json:"function_response,omitempty"`
	// An image at an address, in OpenAI's form: the address, or an object with `url`.
	ImageURL json.RawMessage `json:"image_url,omitempty"`
	// A medium in line.
	InlineData *InlinePart `json:"inline_data,omitempty"`
	// An image or a document in Claude's form.
	Source map[string]json.RawMessage `json:"source,omitempty"`
	// A text.
	Text string `json:"text,omitempty"`
	// `text`, `function_response`, `file_data`, `inline_data`, `image_url`, `image`, `document` or `tool_result`
	Type string `json:"type,omitempty"`
}

// ResponseFormat: The form of a result, in the words of OpenAI. Which fields are set depends on the kind.
type ResponseFormat struct {
	// The schema and its name.
	JSONSchema *NamedSchema `json:"json_schema,omitempty"`
	// Which of the kinds it is.
	Type string `json:"type"`
}

// ResultDisplay: What people are shown of a tool's work. Which fields are set depends on the kind.
type ResultDisplay struct {
	// The sub-agent's name.
	Agent string `json:"agent,omitempty"`
	// What it was asked to do.
	Description string `json:"description,omitempty"`
	// The unified diff.
	Diff string `json:"diff,omitempty"`
	// The path as people know it.
	FileName string `json:"file_name,omitempty"`
	// Which of the kinds it is.
	Kind string `json:"kind"`
	// For filtering: `tool`.
	LogScope string `json:"log_scope,omitempty"`
	// A line about it.
	Message string `json:"message,omitempty"`
	// The text after.
	Modified string `json:"modified,omitempty"`
	// The text before; null when the file is new.
	Original string `json:"original,omitempty"`
	// The plan, in Markdown.
	Plan string `json:"plan,omitempty"`
	// What it said at the end.
	Result string `json:"result,omitempty"`
	// Line counts.
	Stat *LineCounts `json:"stat,omitempty"`
	// `running`, `completed`, `failed` or `cancelled`
	Status string `json:"status,omitempty"`
	// The text.
	Text string `json:"text,omitempty"`
	// The things.
	Todos []TodoRecord `json:"todos,omitempty"`
	// Its tokens so far.
	Tokens int64 `json:"tokens,omitempty"`
	// Its tool calls so far.
	ToolCalls int64 `json:"tool_calls,omitempty"`
}

// SessionEventRecord: A notice about the session.
type SessionEventRecord struct {
	// `Finished`, `ChatCompressed`, `MaxSessionTurns`, `USER_CANCELLED`, `MAX_TOKENS`, `Retry`, `ModelFallback`, `LoopDetected`, `ModeChanged`, `Steered` or `Custom`
	Event string `json:"event"`
	// What happened, in a sentence.
	Message string `json:"message,omitempty"`
	// Numbers that go with it.
	Metrics *Metrics `json:"metrics,omitempty"`
	// The call whose sub-agent it is about.
	ParentToolCallID string `json:"parent_tool_call_id,omitempty"`
	// The turn; absent outside one. Of `Steered`, the prompt that joins; `value.turn` is the turn.
	PromptID string `json:"prompt_id,omitempty"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// `x-qwen-session-event`
	Type string `json:"type"`
	// What a custom event carries.
	Value json.RawMessage `json:"value,omitempty"`
}

// Values of SessionEventType: What a session event says it is.
const (
	// `x-qwen-session-event`
	SessionEventTypeXQwenSessionEvent = "x-qwen-session-event"
)

// Span: A styled range, counted in Unicode scalar values of the record's text.
type Span struct {
	// The first one after it.
	End int64 `json:"end"`
	// The first one in it.
	Start int64 `json:"start"`
	// How it looks.
	Style SpanStyle `json:"style"`
}

// SpanStyle: How a range looks.
type SpanStyle struct {
	// The name of a colour in the theme, such as `AccentGreen`.
	ThemeToken string `json:"theme_token"`
}

// SuggestionItem: A suggestion.
type SuggestionItem struct {
	// What it means.
	Description string `json:"description,omitempty"`
	// What is shown.
	Label string `json:"label"`
	// What is inserted.
	Value string `json:"value"`
}

// TerminalRecord: What a terminal would have shown: a tool's output, a log line, or the end of a run.
type TerminalRecord struct {
	// The escapes that were removed, and where they stood.
	Ansi []AnsiCode `json:"ansi,omitempty"`
	// `stdout` or `stderr`
	Channel string `json:"channel"`
	// How loud a console line is.
	ConsoleLevel string `json:"console_level,omitempty"`
	// How the run ended; only where the source is `system`.
	ExitCode *int64 `json:"exit_code,omitempty"`
	// Which part of the program wrote: `system`, `tool` or `debug`.
	LogScope string `json:"log_scope,omitempty"`
	// The call whose sub-agent's tool wrote.
	ParentToolCallID string `json:"parent_tool_call_id,omitempty"`
	// The turn; absent outside one.
	PromptID string `json:"prompt_id,omitempty"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// `assistant`, `tool`, `console` or `system`
	Source string `json:"source"`
	// Styled ranges of `text`.
	Spans []Span `json:"spans,omitempty"`
	// What was written, escapes removed.
	Text string `json:"text,omitempty"`
	// The call that wrote.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// `x-qwen-terminal`
	Type string `json:"type"`
}

// Values of TerminalType: What a terminal record says it is.
const (
	// `x-qwen-terminal`
	TerminalTypeXQwenTerminal = "x-qwen-terminal"
)

// ThoughtRecord: A thought.
type ThoughtRecord struct {
	// The thought.
	Description string `json:"description"`
	// The call whose sub-agent thinks.
	ParentToolCallID string `json:"parent_tool_call_id,omitempty"`
	// The turn.
	PromptID string `json:"prompt_id,omitempty"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// What it is about, in a few words.
	Subject string `json:"subject"`
	// `x-qwen-thought`
	Type string `json:"type"`
}

// Values of ThoughtType: What a thought says it is.
const (
	// `x-qwen-thought`
	ThoughtTypeXQwenThought = "x-qwen-thought"
)

// TodoRecord: One thing to do.
type TodoRecord struct {
	// What to do.
	Content string `json:"content"`
	// Its id.
	ID string `json:"id"`
	// `pending`, `in_progress` or `completed`
	Status string `json:"status"`
}

// TokenUsage: Tokens, in OpenAI's words.
type TokenUsage struct {
	// Tokens written by the model.
	CompletionTokens int64 `json:"completion_tokens"`
	// Of the completion's.
	CompletionTokensDetails *CompletionTokens `json:"completion_tokens_details,omitempty"`
	// The provider reported none and these are an estimate.
	Estimated bool `json:"estimated,omitempty"`
	// Tokens read by the model.
	PromptTokens int64 `json:"prompt_tokens"`
	// Of the prompt's.
	PromptTokensDetails *PromptTokens `json:"prompt_tokens_details,omitempty"`
	// Both together.
	TotalTokens int64 `json:"total_tokens"`
}

// ToolCallDelta: More of a call.
type ToolCallDelta struct {
	// What is called.
	Function FunctionDelta `json:"function"`
	// The call's id; in its first piece.
	ID string `json:"id,omitempty"`
	// The call's place in its message.
	Index int64 `json:"index"`
	// `function`; in its first piece.
	Type string `json:"type,omitempty"`
}

// ToolDisplayRecord: How a tool call stands.
type ToolDisplayRecord struct {
	// What someone is asked to agree to, while they are asked.
	Confirmation *ConfirmationRecord `json:"confirmation,omitempty"`
	// The call whose sub-agent calls.
	ParentToolCallID string `json:"parent_tool_call_id,omitempty"`
	// The call has not started.
	Pending bool `json:"pending,omitempty"`
	// The turn.
	PromptID string `json:"prompt_id,omitempty"`
	// What people are shown.
	ResultDisplay *ResultDisplay `json:"result_display,omitempty"`
	// The session.
	SessionID string `json:"session_id,omitempty"`
	// `pending`, `confirming`, `executing`, `success`, `error` or `canceled`
	Status string `json:"status"`
	// Seconds since the Unix epoch.
	Timestamp int64 `json:"timestamp"`
	// The call.
	ToolCallID string `json:"tool_call_id"`
	// The tool.
	ToolName string `json:"tool_name,omitempty"`
	// `x-qwen-tool-display`
	Type string `json:"type"`
}

// Values of ToolDisplayType: What a tool display says it is.
const (
	// `x-qwen-tool-display`
	ToolDisplayTypeXQwenToolDisplay = "x-qwen-tool-display"
)

// ToolRequest: A call as it was asked for.
type ToolRequest struct {
	// Its arguments.
	Args map[string]json.RawMessage `json:"args,omitempty"`
	// The call.
	CallId string `json:"callId,omitempty"`
	// The tool.
	Name string `json:"name,omitempty"`
}

// ToolUse: A tool and its arguments.
type ToolUse struct {
	// The arguments, an object.
	Arguments map[string]json.RawMessage `json:"arguments"`
	// The tool.
	Name string `json:"name"`
}

// Values of Trigger: What triggers suggestions.
const (
	// `/`
	TriggerSlash = "slash"
	// `@`
	TriggerAt = "at"
)

// TurnSummary: The summary of a turn.
type TurnSummary struct {
	// A continuation of a turn that had ended, under the same `prompt_id`.
	Continuation bool `json:"continuation,omitempty"`
	// Control requests that went wrong.
	ControlErrors []ErrorBody `json:"control_errors,omitempty"`
	// From start to end.
	DurationMs int64 `json:"duration_ms"`
	// Model calls made.
	ModelCalls int64 `json:"model_calls"`
	// Calls that were refused.
	PermissionDenials []PermissionDenial `json:"permission_denials"`
	// `done`, `error`, `cancelled`, `interrupted` or the limit that was reached.
	Status string `json:"status"`
	// The answer as data, where a schema was asked for.
	StructuredOutput json.RawMessage `json:"structured_output,omitempty"`
	// Tool calls made.
	ToolCalls int64 `json:"tool_calls"`
	// Tokens by model.
	UsageByModel map[string]ModelTokens `json:"usage_by_model"`
}

// UserLine: The user line of the Claude and Qwen Code SDKs.
type UserLine struct {
	// What is said.
	Message UserMessage `json:"message"`
	// Not looked at: the line belongs to the session that runs.
	SessionID string `json:"session_id,omitempty"`
	// The host's place in a trace (W3C Trace Context), under which the turn belongs.
	Traceparent string `json:"traceparent,omitempty"`
	// What goes with it.
	Tracestate string `json:"tracestate,omitempty"`
	// `user`
	Type string `json:"type"`
	// The client's own id of the message.
	UUID string `json:"uuid,omitempty"`
}

// UserMessage: What the user says.
type UserMessage struct {
	// A text, or blocks.
	Content json.RawMessage `json:"content"`
	// `user`
	Role string `json:"role"`
}

// Values of UserType: What a user line says it is.
const (
	// `user`
	UserTypeUser = "user"
)

// WireToolCall: A call, whole.
type WireToolCall struct {
	// What is called.
	Function FunctionCall `json:"function"`
	// The call's id.
	ID string `json:"id"`
	// `function`
	Type string `json:"type"`
}
