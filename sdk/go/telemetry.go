package qwen

import "context"

// Telemetry traces what the SDK does. The module in the folder otel implements it with OpenTelemetry; hosts with another
// tracer implement it themselves. Its methods must not block.
type Telemetry interface {
	// StartTurn starts the span of a turn below the span of the context. The trace context goes to the hub, so that one
	// trace leads from the host to the tools. `end` is called once.
	StartTurn(ctx context.Context, turn TurnInfo) (trace TraceContext, end func(result *Result, err error))
	// StartTool starts the span of a tool of this process below the worker's span of the call.
	StartTool(ctx context.Context, tool ToolInfo) (toolContext context.Context, end func(err error))
}

// TurnInfo describes a turn that starts.
type TurnInfo struct {
	SessionID string
	PromptID  string
}

// ToolInfo describes a call of a tool in this process.
type ToolInfo struct {
	Server string
	Name   string
	// Traceparent is the worker's span of the call in the form of W3C; empty without telemetry in the worker.
	Traceparent string
}

// TraceContext is a span in the form of W3C. The zero value is no span.
type TraceContext struct {
	Traceparent string
	Tracestate  string
}

// noTelemetry is used if the host has none.
type noTelemetry struct{}

func (noTelemetry) StartTurn(context.Context, TurnInfo) (TraceContext, func(*Result, error)) {
	return TraceContext{}, func(*Result, error) {}
}

func (noTelemetry) StartTool(ctx context.Context, _ ToolInfo) (context.Context, func(error)) {
	return ctx, func(error) {}
}
