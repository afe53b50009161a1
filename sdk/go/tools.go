package qwen

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/qwen-agent/qwen/sdk/go/internal/schema"
)

// ToolServer is a group of tools. The agent sees a tool as `mcp__<server>__<tool>`. Servers are made by
// [NewToolServer], [NewMCPServer], [MCPCommand] and [MCPHTTP].
type ToolServer interface {
	serverName() string
	// external returns the configuration of a server that the worker starts or reaches; nil for one in this process.
	external() map[string]any
	// connect returns the session's connection to a server in this process.
	connect(timeouts Timeouts, telemetry Telemetry) MCPConnection
	check() error
}

// MCPConnection answers the JSON-RPC messages that one session sends to a server in this process.
type MCPConnection interface {
	// Handle answers a message. For a notification it returns nil. The context ends when the answer is no longer needed.
	Handle(ctx context.Context, message json.RawMessage) (json.RawMessage, error)
	// Close ends the connection with its session.
	Close() error
}

// ToolDefinition is a tool of a server in this process. Make one with [Tool].
type ToolDefinition struct {
	name        string
	description string
	schema      json.RawMessage
	annotations map[string]any
	run         func(ctx context.Context, arguments json.RawMessage) (*ToolResult, error)
	err         error
}

// ToolContent is a part of a tool's result: text, or an image as base64.
type ToolContent struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Data     string `json:"data,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
}

// ToolResult is the result of a tool that is more than one text.
type ToolResult struct {
	Content []ToolContent `json:"content"`
	IsError bool          `json:"isError,omitempty"`
}

// Tool makes a function of this program a tool. The schema of its arguments derives from In: fields are named as
// encoding/json names them, the tag `jsonschema` describes a field, the tag `enum` lists its values, and a field is
// optional if it is a pointer or has omitempty. Arguments that do not fit never reach the function.
//
// A string or a [*ToolResult] is given to the model as it is, any other Out as JSON. An error is the tool's failure, and
// its text is given to the model; the text of a panic is not. The context ends when the turn, the call or the session
// does. The calls of one message run in the order that the model wrote.
func Tool[In, Out any](name, description string, run func(ctx context.Context, in In) (Out, error)) ToolDefinition {
	derived, text, err := schema.For(reflect.TypeFor[In]())
	if err != nil {
		err = fmt.Errorf("qwen: the arguments of the tool %q: %w", name, err)
	}
	return ToolDefinition{
		name: name, description: description, schema: text, err: err,
		run: func(ctx context.Context, arguments json.RawMessage) (*ToolResult, error) {
			var in In
			if err := decodeChecked(derived, arguments, &in); err != nil {
				return failure("The arguments do not fit: " + err.Error()), nil
			}
			out, err := run(ctx, in)
			if err != nil {
				return failure(err.Error()), nil
			}
			return toolResult(out)
		},
	}
}

// Annotate adds hints for users and models, such as `readOnlyHint`. They grant nothing.
func (t ToolDefinition) Annotate(annotations map[string]any) ToolDefinition {
	t.annotations = annotations
	return t
}

// decodeChecked decodes a value that must fit its schema. A type that provides its own schema checks itself.
func decodeChecked(expected *schema.Schema, data []byte, target any) error {
	if expected != nil {
		if err := expected.Check(data); err != nil {
			return err
		}
	}
	return json.Unmarshal(data, target)
}

func failure(text string) *ToolResult {
	return &ToolResult{Content: []ToolContent{{Type: "text", Text: text}}, IsError: true}
}

func toolResult(out any) (*ToolResult, error) {
	switch out := out.(type) {
	case *ToolResult:
		if out != nil {
			return out, nil
		}
		return &ToolResult{Content: []ToolContent{}}, nil
	case ToolResult:
		return &out, nil
	case string:
		return &ToolResult{Content: []ToolContent{{Type: "text", Text: out}}}, nil
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return &ToolResult{Content: []ToolContent{{Type: "text", Text: string(text)}}}, nil
}

type toolServer struct {
	name  string
	tools []ToolDefinition
}

// NewToolServer groups tools that run in this process.
func NewToolServer(name string, tools ...ToolDefinition) ToolServer {
	return &toolServer{name, tools}
}

func (s *toolServer) serverName() string     { return s.name }
func (*toolServer) external() map[string]any { return nil }
func (s *toolServer) connect(timeouts Timeouts, telemetry Telemetry) MCPConnection {
	return &toolConnection{server: s, timeouts: timeouts, telemetry: telemetry, calls: map[string]context.CancelFunc{}}
}

var toolNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

func checkServerName(name string) error {
	if !toolNamePattern.MatchString(name) || strings.Contains(name, "__") {
		return fmt.Errorf("qwen: %q is not a name for a tool server: use letters, digits, '.', '_' and '-', and no \"__\"", name)
	}
	return nil
}

func (s *toolServer) check() error {
	if err := checkServerName(s.name); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, tool := range s.tools {
		switch {
		case tool.err != nil:
			return tool.err
		case tool.run == nil:
			return fmt.Errorf("qwen: the server %q has an empty tool; make tools with qwen.Tool", s.name)
		case !toolNamePattern.MatchString(tool.name):
			return fmt.Errorf("qwen: %q is not a name for a tool: use letters, digits, '.', '_' and '-'", tool.name)
		case names[tool.name]:
			return fmt.Errorf("qwen: the server %q has two tools named %q", s.name, tool.name)
		}
		names[tool.name] = true
	}
	return nil
}

// toolConnection serves the tools of one server to one session.
type toolConnection struct {
	server    *toolServer
	timeouts  Timeouts
	telemetry Telemetry
	mu        sync.Mutex
	// calls are those that run, by the JSON text of their request id.
	calls map[string]context.CancelFunc
}

type rpcRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

const (
	rpcMethodNotFound = -32601
	rpcInvalidParams  = -32602
)

func rpcAnswer(id json.RawMessage, result any, failed *rpcError) (json.RawMessage, error) {
	answer := map[string]any{"jsonrpc": "2.0", "id": id}
	if failed != nil {
		answer["error"] = failed
	} else {
		answer["result"] = result
	}
	return json.Marshal(answer)
}

func (c *toolConnection) Handle(ctx context.Context, message json.RawMessage) (json.RawMessage, error) {
	var request rpcRequest
	if err := json.Unmarshal(message, &request); err != nil {
		return nil, err
	}
	switch request.Method {
	case "initialize":
		var params struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		// Without parameters the version is empty, which the worker judges.
		_ = json.Unmarshal(request.Params, &params)
		return rpcAnswer(request.ID, map[string]any{
			"protocolVersion": params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": c.server.name, "version": "1.0.0"},
		}, nil)
	case "ping":
		return rpcAnswer(request.ID, map[string]any{}, nil)
	case "tools/list":
		return rpcAnswer(request.ID, map[string]any{"tools": c.list()}, nil)
	case "tools/call":
		return c.call(ctx, &request)
	case "notifications/cancelled":
		c.cancel(request.Params)
		return nil, nil
	}
	if request.ID == nil {
		return nil, nil
	}
	return rpcAnswer(request.ID, nil, &rpcError{rpcMethodNotFound, "there is no method " + request.Method})
}

func (c *toolConnection) list() []map[string]any {
	tools := make([]map[string]any, 0, len(c.server.tools))
	for _, tool := range c.server.tools {
		listed := map[string]any{"name": tool.name, "description": tool.description, "inputSchema": tool.schema}
		if tool.annotations != nil {
			listed["annotations"] = tool.annotations
		}
		tools = append(tools, listed)
	}
	return tools
}

func (c *toolConnection) call(ctx context.Context, request *rpcRequest) (json.RawMessage, error) {
	var params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			Traceparent string `json:"traceparent"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(request.Params, &params); err != nil {
		return rpcAnswer(request.ID, nil, &rpcError{rpcInvalidParams, err.Error()})
	}
	if nonNull(params.Arguments) == nil {
		params.Arguments = json.RawMessage("{}")
	}
	for _, tool := range c.server.tools {
		if tool.name != params.Name {
			continue
		}
		ctx, cancel := context.WithTimeoutCause(ctx, c.timeouts.Tool, &TimeoutError{"Tool", c.timeouts.Tool})
		defer cancel()
		c.track(string(request.ID), cancel)
		defer c.track(string(request.ID), nil)
		ctx, end := c.telemetry.StartTool(ctx, ToolInfo{Server: c.server.name, Name: tool.name, Traceparent: params.Meta.Traceparent})
		result, err := tool.run(ctx, params.Arguments)
		end(err)
		if err != nil {
			return nil, err
		}
		return rpcAnswer(request.ID, result, nil)
	}
	return rpcAnswer(request.ID, nil, &rpcError{rpcInvalidParams, "there is no tool " + params.Name})
}

func (c *toolConnection) track(id string, cancel context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel == nil {
		delete(c.calls, id)
	} else {
		c.calls[id] = cancel
	}
}

func (c *toolConnection) cancel(params json.RawMessage) {
	var cancelled struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &cancelled) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.calls[string(cancelled.RequestID)]; cancel != nil {
		cancel()
	}
}

func (c *toolConnection) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cancel := range c.calls {
		cancel()
	}
	return nil
}

// externalServer is an MCP server that the worker starts or reaches.
type externalServer struct {
	name   string
	config map[string]any
}

// MCPCommand is an MCP server that the worker starts as a child process.
func MCPCommand(name, command string, args ...string) ToolServer {
	return &externalServer{name, map[string]any{"type": "stdio", "command": command, "args": append([]string{}, args...)}}
}

// MCPHTTP is an MCP server that the worker reaches over HTTP.
func MCPHTTP(name, url string, headers map[string]string) ToolServer {
	config := map[string]any{"type": "http", "url": url}
	if headers != nil {
		config["headers"] = headers
	}
	return &externalServer{name, config}
}

func (s *externalServer) serverName() string                      { return s.name }
func (s *externalServer) external() map[string]any                { return s.config }
func (*externalServer) connect(Timeouts, Telemetry) MCPConnection { return nil }
func (s *externalServer) check() error                            { return checkServerName(s.name) }

// mcpServer is a server of another library in this process.
type mcpServer struct {
	name string
	dial func() (MCPConnection, error)
}

// NewMCPServer makes any MCP server in this process a tool server. Each session dials its own connection. The module in
// the folder mcp adapts servers of the official MCP SDK.
func NewMCPServer(name string, dial func() (MCPConnection, error)) ToolServer {
	return &mcpServer{name, dial}
}

func (s *mcpServer) serverName() string     { return s.name }
func (*mcpServer) external() map[string]any { return nil }
func (s *mcpServer) check() error {
	if s.dial == nil {
		return fmt.Errorf("qwen: the server %q has no dial function", s.name)
	}
	return checkServerName(s.name)
}

func (s *mcpServer) connect(Timeouts, Telemetry) MCPConnection {
	return &dialledConnection{dial: s.dial}
}

// dialledConnection dials with the first message.
type dialledConnection struct {
	dial func() (MCPConnection, error)
	once sync.Once
	conn MCPConnection
	err  error
}

func (c *dialledConnection) open() { c.conn, c.err = c.dial() }

func (c *dialledConnection) Handle(ctx context.Context, message json.RawMessage) (json.RawMessage, error) {
	c.once.Do(c.open)
	if c.err != nil {
		return nil, c.err
	}
	return c.conn.Handle(ctx, message)
}

func (c *dialledConnection) Close() error {
	// A connection that was never used is not dialled any more.
	c.once.Do(func() { c.err = ErrClosed })
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}
