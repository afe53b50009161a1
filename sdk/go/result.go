package qwen

import (
	"encoding/json"
	"time"

	"github.com/qwen-agent/qwen/sdk/go/wire"
)

// Status is how a turn ended. A version of the worker that is newer than this SDK may report others.
type Status string

// The statuses of a turn.
const (
	StatusDone         Status = "done"
	StatusError        Status = "error"
	StatusCancelled    Status = "cancelled"
	StatusInterrupted  Status = "interrupted"
	StatusMaxTurns     Status = "max_turns"
	StatusMaxToolCalls Status = "max_tool_calls"
	StatusMaxWallTime  Status = "max_wall_time"
	StatusMaxTokens    Status = "max_tokens"
	StatusBudget       Status = "budget"
)

// Usage counts tokens and model calls.
type Usage struct {
	InputTokens     int64
	OutputTokens    int64
	TotalTokens     int64
	CachedTokens    int64
	ReasoningTokens int64
	// Calls counts the calls of the model.
	Calls int64
	// CostUSD is nil if the prices of the model are unknown.
	CostUSD *float64
	// Estimated is true if the model's server reported no counts.
	Estimated bool
}

// AgentUsage counts what the runs of one sub-agent spent in a turn, without the sub-agents that it started.
type AgentUsage struct {
	Usage
	// Runs counts how often it was started.
	Runs int64
	// ToolCalls counts its tool calls.
	ToolCalls int64
}

// Denial is a tool call that was refused.
type Denial struct {
	ToolName   string
	ToolCallID string
	Arguments  json.RawMessage
	// Reason states who refused and why.
	Reason string
}

// Result is the last message of every turn.
type Result struct {
	Meta
	// Text is the text of the last message that has any.
	Text   string
	Status Status
	// Error is the cause of a status other than done; nil if there is no other cause than the status.
	Error *TurnError
	// Usage counts the whole turn, sub-agents included.
	Usage        Usage
	UsageByModel map[string]Usage
	// UsageByAgent is the part of the turn that sub-agents spent, by name; empty without sub-agents.
	UsageByAgent map[string]AgentUsage
	// CostUSD is the cost of the turn; nil if a price is unknown.
	CostUSD *float64
	// Denials lists the calls that were refused.
	Denials []Denial
	// ToolCalls are the calls of the turn in order, those of sub-agents excluded.
	ToolCalls []ToolCall
	// Output is the structured output; nil if none was asked for or none came.
	Output     json.RawMessage
	Duration   time.Duration
	ModelCalls int64
	ToolCount  int64
	// previous is the result before this one, for the error of a worker that died.
	previous *Result
}

// Done reports whether the turn completed.
func (r *Result) Done() bool { return r.Status == StatusDone }

// OK reports whether the turn completed and no call was refused.
func (r *Result) OK() bool { return r.Done() && len(r.Denials) == 0 }

// Err returns a [*TurnError] for a turn that did not complete, and nil for one that did.
func (r *Result) Err() error {
	if r.Done() {
		return nil
	}
	failure := TurnError{Status: r.Status}
	if r.Error != nil {
		failure = *r.Error
	}
	failure.Result = r
	return &failure
}

func (*Result) message() {}

// newResult reads a terminal record.
func newResult(meta Meta, text string, calls []ToolCall, usage *wire.TokenUsage, metadata *wire.Metadata) *Result {
	turn := metadata.Turn
	result := &Result{
		Meta: meta, Text: text, Status: Status(turn.Status), ToolCalls: calls, Output: nonNull(turn.StructuredOutput),
		Duration: time.Duration(turn.DurationMs) * time.Millisecond, ModelCalls: turn.ModelCalls, ToolCount: turn.ToolCalls,
		Usage: usageOf(usage), UsageByModel: make(map[string]Usage, len(turn.UsageByModel)),
	}
	result.Usage.Calls = turn.ModelCalls
	var total float64
	hasPrices := len(turn.UsageByModel) > 0
	for model, tokens := range turn.UsageByModel {
		used := Usage{
			InputTokens: tokens.PromptTokens, OutputTokens: tokens.CompletionTokens, TotalTokens: tokens.TotalTokens,
			CachedTokens: value(tokens.CachedTokens), ReasoningTokens: value(tokens.ReasoningTokens), Calls: tokens.Calls, CostUSD: tokens.CostUSD,
		}
		result.UsageByModel[model] = used
		if tokens.CostUSD == nil {
			hasPrices = false
		} else {
			total += *tokens.CostUSD
		}
	}
	for agent, tokens := range turn.UsageByAgent {
		if result.UsageByAgent == nil {
			result.UsageByAgent = make(map[string]AgentUsage, len(turn.UsageByAgent))
		}
		result.UsageByAgent[agent] = AgentUsage{
			Usage: Usage{
				InputTokens: tokens.PromptTokens, OutputTokens: tokens.CompletionTokens, TotalTokens: tokens.TotalTokens,
				CachedTokens: value(tokens.CachedTokens), ReasoningTokens: value(tokens.ReasoningTokens), Calls: tokens.ModelCalls, CostUSD: tokens.CostUSD,
			},
			Runs: tokens.Runs, ToolCalls: tokens.ToolCalls,
		}
	}
	if hasPrices {
		result.CostUSD = &total
		result.Usage.CostUSD = &total
	}
	for _, denial := range turn.PermissionDenials {
		result.Denials = append(result.Denials, Denial{denial.ToolName, denial.ToolCallID, denial.Arguments, denial.Reason})
	}
	if metadata.Error != nil {
		result.Error = turnError(result.Status, metadata.Error, meta.Raw)
	}
	return result
}

func usageOf(usage *wire.TokenUsage) Usage {
	if usage == nil {
		return Usage{}
	}
	used := Usage{InputTokens: usage.PromptTokens, OutputTokens: usage.CompletionTokens, TotalTokens: usage.TotalTokens, Estimated: usage.Estimated}
	if usage.PromptTokensDetails != nil {
		used.CachedTokens = usage.PromptTokensDetails.CachedTokens
	}
	if usage.CompletionTokensDetails != nil {
		used.ReasoningTokens = usage.CompletionTokensDetails.ReasoningTokens
	}
	return used
}

// turnError reads an error of the wire. `retry_after_ms` is a field of the hub's refusals.
func turnError(status Status, body *wire.ErrorBody, line []byte) *TurnError {
	var extra struct {
		Metadata struct {
			Error struct {
				RetryAfterMs int64 `json:"retry_after_ms"`
			} `json:"error"`
		} `json:"metadata"`
	}
	// A field of another type counts as absent.
	_ = json.Unmarshal(line, &extra)
	return &TurnError{
		Status: status, Code: body.Code, Type: body.Type, Message: body.Message, Retryable: body.Retryable,
		RetryAfter: time.Duration(extra.Metadata.Error.RetryAfterMs) * time.Millisecond,
	}
}

func value(number *int64) int64 {
	if number == nil {
		return 0
	}
	return *number
}

func nonNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}
