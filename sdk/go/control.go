package qwen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/qwen-agent/qwen/sdk/go/internal/hub"
	"github.com/qwen-agent/qwen/sdk/go/wire"
)

// controlChannel answers the worker's questions: permissions, hooks, and messages to tool servers of this process. Each
// question has its own goroutine and exactly one answer. A callback that fails or is late is an error answer, which the
// worker takes as no. A question that was withdrawn gets no answer.
type controlChannel struct {
	session  *Session
	hooks    map[string]registeredHook
	declared map[string]any
	servers  map[string]MCPConnection

	mu   sync.Mutex
	open map[string]*question
	// running counts callbacks that have not returned; idle is closed when there is none left after close.
	running int
	idle    chan struct{}
}

// question is a control request of the worker.
type question struct {
	line wire.ControlRequestLine
	// turn is the one that asks; nil for a question of the session.
	turn   *turn
	cancel context.CancelCauseFunc
}

var (
	errWithdrawn    = errors.New("qwen: the question was withdrawn")
	errNothingReady = errors.New("qwen: nothing is ready")
	errNoCallback   = errors.New("there is no callback for this question")
)

func newControlChannel(s *Session) *controlChannel {
	c := &controlChannel{session: s, servers: map[string]MCPConnection{}, open: map[string]*question{}}
	c.hooks, c.declared = s.options.Hooks.register(s.manager.options.Timeouts.Callback)
	for _, server := range s.options.Tools {
		if connection := server.connect(s.manager.options.Timeouts, s.manager.options.Telemetry); connection != nil {
			c.servers[server.serverName()] = connection
		}
	}
	return c
}

// initializeFields returns what the session announces to its workers; nil if there is nothing, so that no worker is
// needed before the first prompt.
func (c *controlChannel) initializeFields(options *SessionOptions) map[string]any {
	fields := map[string]any{}
	if c.declared != nil {
		fields["hooks"] = c.declared
	}
	external := map[string]any{}
	var internal []string
	for _, server := range options.Tools {
		if config := server.external(); config != nil {
			external[server.serverName()] = config
		} else {
			internal = append(internal, server.serverName())
		}
	}
	if internal != nil {
		fields["sdkMcpServers"] = internal
	}
	if len(external) > 0 {
		fields["mcpServers"] = external
	}
	if len(options.Agents) > 0 {
		fields["agents"] = options.Agents
	}
	if options.SystemPrompt.Replace != "" {
		fields["systemPrompt"] = options.SystemPrompt.Replace
	}
	if options.SystemPrompt.Append != "" {
		fields["appendSystemPrompt"] = options.SystemPrompt.Append
	}
	if options.Rules.Description != "" {
		fields["policyDescription"] = options.Rules.Description
	}
	limit := c.session.manager.options.Timeouts.Callback
	if options.CanUseTool != nil && limit != time.Minute {
		fields["timeout"] = map[string]any{"canUseTool": limit.Milliseconds()}
	}
	if len(fields) == 0 {
		return nil
	}
	fields["protocol_version"] = hub.ProtocolVersion
	return fields
}

// handle starts the callback of a question.
func (c *controlChannel) handle(line []byte) {
	var request wire.ControlRequestLine
	if json.Unmarshal(line, &request) != nil || request.RequestID == "" {
		c.session.logger.Warn("unreadable control request", "line", string(line[:min(len(line), 200)]))
		return
	}
	asking, parent := c.parent(request.PromptID)
	ctx, cancel := context.WithCancelCause(parent)
	ctx, cancelLate := context.WithTimeoutCause(ctx, c.limit(&request), &TimeoutError{"Callback", c.limit(&request)})
	q := &question{line: request, turn: asking, cancel: func(cause error) { cancel(cause); cancelLate() }}
	c.mu.Lock()
	if _, isOpen := c.open[request.RequestID]; isOpen {
		// A client that attached gets open questions again.
		c.mu.Unlock()
		q.cancel(nil)
		return
	}
	c.open[request.RequestID] = q
	c.running++
	c.mu.Unlock()
	// A callback that ignores its context must not keep the worker waiting.
	stop := context.AfterFunc(ctx, func() { c.respond(q, nil, context.Cause(ctx)) })
	go func() {
		defer c.leave()
		defer q.cancel(nil)
		result, err := c.answer(ctx, &request)
		stop()
		c.respond(q, result, err)
	}()
}

// parent returns the turn that asks and its context, or no turn and that of the session.
func (c *controlChannel) parent(promptID string) (*turn, context.Context) {
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.turns {
		if t.promptID == promptID || promptID == "" {
			return t, t.ctx
		}
	}
	return nil, s.ctx
}

func (c *controlChannel) limit(request *wire.ControlRequestLine) time.Duration {
	timeouts := c.session.manager.options.Timeouts
	switch request.Subtype {
	case "mcp_message":
		return timeouts.Tool
	case "hook_callback":
		if registered, ok := c.hooks[request.CallbackID]; ok {
			return registered.hook.Timeout
		}
	}
	return timeouts.Callback
}

// respond sends the answer to a question that is still open.
func (c *controlChannel) respond(q *question, result any, err error) {
	c.mu.Lock()
	isOpen := c.open[q.line.RequestID] == q
	if isOpen {
		delete(c.open, q.line.RequestID)
	}
	c.mu.Unlock()
	if !isOpen {
		return
	}
	if q.turn != nil && q.turn.ctx.Err() != nil {
		// The turn is being cancelled, which withdraws the question. An answer would let the turn run on.
		q.turn.interrupt()
		return
	}
	response := map[string]any{"subtype": "success", "result": result}
	if err != nil {
		c.session.logger.Warn("callback failed", "subtype", q.line.Subtype, "request_id", q.line.RequestID, "error", err)
		// The text of the host's error is for the host only.
		response = map[string]any{"subtype": "error", "error": map[string]any{"message": describeFailure(err), "retryable": false}}
	}
	c.session.manager.conn.Post(map[string]any{
		"type": wire.ControlResponseTypeControlResponse, "request_id": q.line.RequestID, "session_id": q.line.SessionID, "response": response,
	})
}

func describeFailure(err error) string {
	var late *TimeoutError
	switch {
	case errors.As(err, &late):
		return fmt.Sprintf("the host did not answer within %v", late.Limit)
	case errors.Is(err, errNoCallback):
		return errNoCallback.Error()
	}
	return "the callback of the host failed"
}

// answer runs the callback that a question is for.
func (c *controlChannel) answer(ctx context.Context, request *wire.ControlRequestLine) (result any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			c.session.logger.Error("callback panicked", "subtype", request.Subtype, "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
			err = fmt.Errorf("qwen: the callback panicked: %v", panicked)
		}
	}()
	switch request.Subtype {
	case "can_use_tool":
		return c.permit(ctx, request)
	case "hook_callback":
		registered, ok := c.hooks[request.CallbackID]
		if !ok {
			return nil, errNoCallback
		}
		answer, err := registered.hook.Run(ctx, hookInput(registered.event, request))
		if err != nil {
			return nil, err
		}
		return answer.wire(registered.event), nil
	case "mcp_message":
		server, ok := c.servers[request.ServerName]
		if !ok {
			return nil, errNoCallback
		}
		answer, err := server.Handle(ctx, request.Message)
		return map[string]any{"mcp_response": answer}, err
	}
	return nil, errNoCallback
}

func (c *controlChannel) permit(ctx context.Context, request *wire.ControlRequestLine) (any, error) {
	decide := c.session.options.CanUseTool
	if decide == nil {
		return Deny("The host has no permission callback.").wire(), nil
	}
	asked := PermissionRequest{SessionID: request.SessionID, PromptID: request.PromptID, ToolCallID: request.ToolUseID, Input: json.RawMessage("{}")}
	if request.Tool != nil {
		asked.ToolName = request.Tool.Name
		if input, err := json.Marshal(request.Tool.Arguments); err == nil && request.Tool.Arguments != nil {
			asked.Input = input
		}
	}
	if about := request.Metadata; about != nil {
		asked.Reason, asked.BlockedPath, asked.AgentID, asked.Confirmation = about.Reason, about.BlockedPath, about.AgentID, about.Confirmation
		if about.ToolCallID != "" {
			asked.ToolCallID = about.ToolCallID
		}
	}
	decision, err := decide(ctx, asked)
	if err != nil {
		return nil, err
	}
	return decision.wire(), nil
}

func hookInput(event string, request *wire.ControlRequestLine) HookInput {
	var told struct {
		PromptID     string          `json:"prompt_id"`
		ToolName     string          `json:"tool_name"`
		ToolInput    json.RawMessage `json:"tool_input"`
		ToolUseID    string          `json:"tool_use_id"`
		ToolResponse json.RawMessage `json:"tool_response"`
		Prompt       string          `json:"prompt"`
	}
	// Fields of other types stay empty; Raw has them.
	_ = json.Unmarshal(request.Input, &told)
	input := HookInput{
		Event: event, SessionID: request.SessionID, PromptID: request.PromptID, ToolName: told.ToolName, ToolInput: told.ToolInput,
		ToolCallID: told.ToolUseID, ToolResponse: told.ToolResponse, Prompt: told.Prompt, Raw: request.Input,
	}
	if input.PromptID == "" {
		input.PromptID = told.PromptID
	}
	if input.ToolCallID == "" {
		input.ToolCallID = request.ToolUseID
	}
	return input
}

// withdraw ends a question without an answer.
func (c *controlChannel) withdraw(requestID string) {
	c.mu.Lock()
	q := c.open[requestID]
	delete(c.open, requestID)
	c.mu.Unlock()
	if q != nil {
		q.cancel(errWithdrawn)
	}
}

func (c *controlChannel) cancelAll() {
	c.mu.Lock()
	var all []*question
	for _, q := range c.open {
		all = append(all, q)
	}
	clear(c.open)
	c.mu.Unlock()
	for q := range slices.Values(all) {
		q.cancel(errWithdrawn)
	}
}

// leave notes that a callback has returned.
func (c *controlChannel) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if c.running == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// close ends all callbacks and waits for those that heed their context.
func (c *controlChannel) close(ctx context.Context) {
	c.cancelAll()
	c.mu.Lock()
	var idle chan struct{}
	if c.running > 0 {
		idle = make(chan struct{})
		c.idle = idle
	}
	c.mu.Unlock()
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
		}
	}
	for name, server := range c.servers {
		if err := server.Close(); err != nil {
			c.session.logger.Warn("tool server", "server", name, "error", err)
		}
	}
}
