package qwen

import (
	"encoding/json"
	"strings"

	"github.com/qwen-agent/qwen/sdk/go/internal/hub"
	"github.com/qwen-agent/qwen/sdk/go/wire"
)

// completion is a `chat.completion` line of either format.
type completion struct {
	Model   string `json:"model"`
	Choices []struct {
		Delta        *wire.Delta            `json:"delta"`
		Message      *wire.AssistantMessage `json:"message"`
		FinishReason string                 `json:"finish_reason"`
	} `json:"choices"`
	Usage    *wire.TokenUsage `json:"usage"`
	Metadata *wire.Metadata   `json:"metadata"`
}

// turnReader turns the lines of one turn into messages. It never fails: what it cannot read is [Unknown].
type turnReader struct {
	text strings.Builder
	// lastText is the text of the last message that has any: a turn that was stopped ends with an empty message.
	lastText   string
	hasMessage bool
	partial    []ToolCall
	calls      []ToolCall
}

// piece reads a line that carries nothing but text.
func (r *turnReader) piece(meta Meta, text string) *Text {
	r.hasMessage = true
	r.text.WriteString(text)
	return &Text{meta, text}
}

// read returns the messages of a line, the result last if the line ends the turn.
func (r *turnReader) read(meta Meta, envelope *hub.Envelope, line []byte) []Message {
	if envelope.IsMalformed {
		return []Message{&Unknown{meta, true}}
	}
	switch envelope.Kind() {
	case wire.CompletionObjectChatCompletion, wire.ChunkObjectChatCompletionChunk:
		var read completion
		if json.Unmarshal(line, &read) == nil {
			return r.completion(meta, &read)
		}
	case wire.ThoughtTypeXQwenThought:
		var read wire.ThoughtRecord
		if json.Unmarshal(line, &read) == nil {
			return []Message{&Thought{meta, read.Subject, read.Description, read.ParentToolCallID}}
		}
	case wire.ToolDisplayTypeXQwenToolDisplay:
		var read wire.ToolDisplayRecord
		if json.Unmarshal(line, &read) == nil {
			return []Message{&ToolStatus{meta, read.ToolCallID, read.ToolName, read.Status, read.ResultDisplay, read.Confirmation, read.ParentToolCallID}}
		}
	case wire.TerminalTypeXQwenTerminal:
		var read wire.TerminalRecord
		if json.Unmarshal(line, &read) == nil {
			return []Message{&Terminal{meta, read.Channel, read.Source, read.Text, read.ToolCallID, read.ParentToolCallID, read.ExitCode}}
		}
	case wire.SessionEventTypeXQwenSessionEvent:
		var read wire.SessionEventRecord
		if json.Unmarshal(line, &read) == nil {
			return []Message{&SessionEvent{meta, read.Event, read.Message, read.Metrics, nonNull(read.Value)}}
		}
	case wire.CommandTypeResultCommand:
		var read wire.CommandLine
		if json.Unmarshal(line, &read) == nil {
			return r.command(meta, &read)
		}
	case wire.HeartbeatTypeResultHeartbeat, wire.CancelTypeResultCancel, wire.HintTypeResultCommandHint,
		wire.ControlRequestTypeControlRequest, wire.ControlResponseTypeControlResponse, wire.ControlCancelTypeControlCancelRequest:
		// The control channel is not a part of the conversation.
		return nil
	case "":
		var read completion
		if json.Unmarshal(line, &read) == nil && len(read.Choices) > 0 {
			return r.completion(meta, &read)
		}
		var fatal wire.FatalError
		if json.Unmarshal(line, &fatal) == nil && fatal.Error.Message != "" {
			return []Message{&Notice{meta, fatal.Error.Code, fatal.Error.Type, fatal.Error.Message}}
		}
	}
	return []Message{&Unknown{meta, false}}
}

func (r *turnReader) completion(meta Meta, line *completion) []Message {
	var messages []Message
	metadata := line.Metadata
	isTerminal := metadata != nil && metadata.Turn != nil
	isError := metadata != nil && metadata.Error != nil
	if len(line.Choices) > 0 {
		choice := &line.Choices[0]
		switch {
		case choice.Delta != nil:
			messages = r.delta(messages, meta, choice.Delta)
		case choice.Message != nil:
			messages = r.whole(messages, meta, choice.Message)
		}
		if choice.FinishReason != "" && (isTerminal || !isError) {
			messages = r.finish(messages, meta, choice.FinishReason, line, isTerminal)
		}
	}
	switch {
	case isTerminal:
		text := r.text.String()
		if text == "" {
			text = r.lastText
		}
		messages = append(messages, newResult(meta, text, r.calls, line.Usage, metadata))
	case isError:
		messages = append(messages, &Notice{meta, metadata.Error.Code, metadata.Error.Type, metadata.Error.Message})
	}
	return messages
}

func (r *turnReader) delta(messages []Message, meta Meta, delta *wire.Delta) []Message {
	if delta.Role != "" {
		r.begin()
	}
	if delta.Content != "" {
		messages = append(messages, r.piece(meta, delta.Content))
	}
	for _, call := range delta.ToolCalls {
		r.hasMessage = true
		index := int(call.Index)
		if index < 0 || index > len(r.partial)+maxCallGap {
			continue
		}
		for len(r.partial) <= index {
			r.partial = append(r.partial, ToolCall{})
		}
		partial := &r.partial[index]
		if call.ID != "" {
			partial.ID = call.ID
		}
		if call.Function.Name != "" {
			partial.Name = call.Function.Name
		}
		partial.ArgumentsText += call.Function.Arguments
		messages = append(messages, &ToolCallDelta{meta, index, call.ID, call.Function.Name, call.Function.Arguments})
	}
	return messages
}

// maxCallGap bounds the memory that a wrong index of a call can cost.
const maxCallGap = 128

func (r *turnReader) whole(messages []Message, meta Meta, message *wire.AssistantMessage) []Message {
	r.begin()
	if message.Content != "" {
		messages = append(messages, r.piece(meta, message.Content))
	}
	for _, call := range message.ToolCalls {
		r.hasMessage = true
		r.partial = append(r.partial, ToolCall{ID: call.ID, Name: call.Function.Name, ArgumentsText: call.Function.Arguments})
	}
	return messages
}

func (r *turnReader) begin() {
	r.text.Reset()
	r.hasMessage = false
	r.partial = nil
}

// finish ends the message that was read so far.
func (r *turnReader) finish(messages []Message, meta Meta, reason string, line *completion, isTerminal bool) []Message {
	if !r.hasMessage {
		return messages
	}
	r.hasMessage = false
	text := r.text.String()
	if text != "" {
		r.lastText = text
	}
	calls := make([]ToolCall, 0, len(r.partial))
	for _, call := range r.partial {
		if call.Name == "" && call.ID == "" {
			continue
		}
		call.Arguments = json.RawMessage(call.ArgumentsText)
		var object map[string]json.RawMessage
		if json.Unmarshal(call.Arguments, &object) != nil || object == nil {
			call.Arguments = json.RawMessage("{}")
		}
		calls = append(calls, call)
	}
	r.partial = nil
	r.calls = append(r.calls, calls...)
	message := &Assistant{Meta: meta, Text: text, ToolCalls: calls, FinishReason: reason, Model: line.Model}
	if !isTerminal {
		message.Usage = usageOf(line.Usage)
	}
	return append(messages, message)
}

// command reads the outcome of a slash command. It ends the turn unless it submits a prompt.
func (r *turnReader) command(meta Meta, line *wire.CommandLine) []Message {
	messages := []Message{&Command{meta, line.Command.Path, line.Command.Args, line.Result}}
	if line.Result.Type == "submit_prompt" {
		return messages
	}
	result := &Result{Meta: meta, Text: line.Result.Content, Status: StatusDone, UsageByModel: map[string]Usage{}}
	if line.Result.Level == "error" {
		result.Status = StatusError
		result.Error = &TurnError{Status: StatusError, Code: "command_failed", Message: line.Result.Content}
	}
	return append(messages, result)
}
