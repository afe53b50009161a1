package qwen

import (
	"encoding/json"

	"github.com/qwen-agent/qwen/sdk/go/wire"
)

// Message is one step of a turn. Its types are *[Text], *[Assistant], *[ToolCallDelta], *[Thought], *[ToolStatus],
// *[Terminal], *[SessionEvent], *[Command], *[Notice], *[Result] and *[Unknown]. A version of the worker that is newer
// than this SDK may send others; they arrive as *[Unknown], so a type switch needs no other default.
type Message interface {
	// Info returns where the message comes from.
	Info() *Meta
	message()
}

// Meta is what all messages have.
type Meta struct {
	SessionID string
	PromptID  string
	// Seq is the number of the message's line in its session, for [Session.Attach]; 0 if lines are not numbered.
	Seq uint64
	// Raw is the line as the worker wrote it, unknown fields included. Package wire has types to decode it.
	Raw Raw
}

// Raw is a line of the wire. It prints as text.
type Raw []byte

// String returns the line as text.
func (r Raw) String() string { return string(r) }

// MarshalJSON returns the line as it is.
func (r Raw) MarshalJSON() ([]byte, error) { return json.RawMessage(r).MarshalJSON() }

// Decode decodes the line, for example into a type of package wire.
func (r Raw) Decode(target any) error { return json.Unmarshal(r, target) }

// Info returns where the message comes from.
func (m *Meta) Info() *Meta { return m }

// Text is a piece of the answer, as the model writes it.
type Text struct {
	Meta
	Text string
}

// ToolCall is a call that the model made.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is a JSON object; `{}` if the model wrote anything else, which ArgumentsText then holds.
	Arguments     json.RawMessage
	ArgumentsText string
}

// Assistant is a whole message of the model. It follows the pieces that it consists of; the last one of a turn
// precedes the result.
type Assistant struct {
	Meta
	Text      string
	ToolCalls []ToolCall
	// FinishReason is `stop`, `tool_calls`, `length` or `content_filter`.
	FinishReason string
	Model        string
	// Usage counts this message; zero in the last message of a turn, whose result counts the whole turn.
	Usage Usage
}

// ToolCallDelta is a piece of a tool call, as the model writes it.
type ToolCallDelta struct {
	Meta
	// Index distinguishes the calls of one message.
	Index int
	// ID and Name are set in the first piece of a call.
	ID            string
	Name          string
	ArgumentsText string
}

// Thought is a part of the model's thinking.
type Thought struct {
	Meta
	Subject     string
	Description string
	// ParentToolCallID is the call that started the sub-agent which thinks; empty for the main agent.
	ParentToolCallID string
}

// ToolStatus reports the progress of a tool call.
type ToolStatus struct {
	Meta
	ToolCallID string
	ToolName   string
	// Status is `pending`, `confirming`, `executing`, `success`, `error` or `canceled`.
	Status string
	// Display is what users can be shown of the call's outcome; nil if there is none yet.
	Display *wire.ResultDisplay
	// Confirmation is what a user is asked to approve; nil if there is no question.
	Confirmation     *wire.ConfirmationRecord
	ParentToolCallID string
}

// Terminal is output of a tool or of the console.
type Terminal struct {
	Meta
	// Channel is `stdout` or `stderr`, Source what wrote it, such as `tool`.
	Channel          string
	Source           string
	Text             string
	ToolCallID       string
	ParentToolCallID string
	// ExitCode is set at the end of a run.
	ExitCode *int64
}

// SessionEvent reports something about the session, such as `Steered`, `Retry` or `ChatCompressed`.
type SessionEvent struct {
	Meta
	Event   string
	Message string
	Metrics *wire.Metrics
	Value   json.RawMessage
}

// Command is the outcome of a slash command.
type Command struct {
	Meta
	// Path is the command's name and sub-names, Args the rest as typed.
	Path []string
	Args string
	// Outcome has the message, the dialog, the tool or the prompt that came of it.
	Outcome wire.CommandOutcome
}

// Notice is an error that does not end the turn, such as an answer that the worker ignored.
type Notice struct {
	Meta
	Code    string
	Type    string
	Message string
}

// Unknown is a line that this SDK cannot read. Raw has it as it came.
type Unknown struct {
	Meta
	// Malformed is true for a line that is not valid JSON, and false for one of an unknown type.
	Malformed bool
}

func (*Text) message()          {}
func (*Assistant) message()     {}
func (*ToolCallDelta) message() {}
func (*Thought) message()       {}
func (*ToolStatus) message()    {}
func (*Terminal) message()      {}
func (*SessionEvent) message()  {}
func (*Command) message()       {}
func (*Notice) message()        {}
func (*Unknown) message()       {}
