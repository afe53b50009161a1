// Package qwenotel traces and counts turns and tools with OpenTelemetry. It uses the API only: spans and metrics go
// wherever the program's providers send them.
//
//	m, err := qwen.Open(ctx, qwen.Options{Telemetry: qwenotel.New()})
package qwenotel

import (
	"context"
	"time"

	qwen "github.com/qwen-agent/qwen/sdk/go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/qwen-agent/qwen/sdk/go/otel"

// Telemetry implements [qwen.Telemetry].
type Telemetry struct {
	tracer   trace.Tracer
	turns    metric.Int64Counter
	duration metric.Float64Histogram
	tokens   metric.Int64Counter
	// propagator is W3C's, which the hub reads, whichever one the program has chosen.
	propagator propagation.TraceContext
}

// New uses the global providers, as they are at the time of each span.
func New() *Telemetry { return NewWith(otel.GetTracerProvider(), otel.GetMeterProvider()) }

// NewWith uses these providers.
func NewWith(tracers trace.TracerProvider, meters metric.MeterProvider) *Telemetry {
	meter := meters.Meter(scope)
	t := &Telemetry{tracer: tracers.Tracer(scope)}
	// An instrument that cannot be created is replaced by one that does nothing.
	t.turns, _ = meter.Int64Counter("qwen.sdk.turns", metric.WithDescription("Turns by status"))
	t.duration, _ = meter.Float64Histogram("qwen.sdk.turn.duration", metric.WithUnit("ms"), metric.WithDescription("Time from prompt to result"))
	t.tokens, _ = meter.Int64Counter("qwen.sdk.tokens", metric.WithDescription("Tokens by kind"))
	return t
}

// StartTurn implements [qwen.Telemetry].
func (t *Telemetry) StartTurn(ctx context.Context, turn qwen.TurnInfo) (qwen.TraceContext, func(*qwen.Result, error)) {
	started := time.Now()
	ctx, span := t.tracer.Start(ctx, "qwen.turn", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.conversation.id", turn.SessionID), attribute.String("session.id", turn.SessionID),
		attribute.String("qwen.prompt_id", turn.PromptID)))
	carrier := propagation.MapCarrier{}
	t.propagator.Inject(ctx, carrier)
	end := func(result *qwen.Result, err error) { t.endTurn(ctx, span, started, result, err) }
	return qwen.TraceContext{Traceparent: carrier["traceparent"], Tracestate: carrier["tracestate"]}, end
}

func (t *Telemetry) endTurn(ctx context.Context, span trace.Span, started time.Time, result *qwen.Result, err error) {
	status := "closed"
	if result != nil {
		status = string(result.Status)
		span.SetAttributes(attribute.String("qwen.status", status), attribute.Int("qwen.permission_denials", len(result.Denials)),
			attribute.Int64("gen_ai.usage.input_tokens", result.Usage.InputTokens), attribute.Int64("gen_ai.usage.output_tokens", result.Usage.OutputTokens))
		t.tokens.Add(ctx, result.Usage.InputTokens, metric.WithAttributes(attribute.String("kind", "input")))
		t.tokens.Add(ctx, result.Usage.OutputTokens, metric.WithAttributes(attribute.String("kind", "output")))
		if err == nil {
			err = result.Err()
		}
	}
	if err != nil {
		if result == nil {
			status = "exception"
		}
		span.RecordError(err)
		span.SetStatus(codes.Error, status)
	}
	labels := metric.WithAttributes(attribute.String("status", status))
	t.turns.Add(ctx, 1, labels)
	t.duration.Record(ctx, float64(time.Since(started).Microseconds())/1000, labels)
	span.End()
}

// StartTool implements [qwen.Telemetry].
func (t *Telemetry) StartTool(ctx context.Context, tool qwen.ToolInfo) (context.Context, func(error)) {
	if tool.Traceparent != "" {
		ctx = t.propagator.Extract(ctx, propagation.MapCarrier{"traceparent": tool.Traceparent})
	}
	ctx, span := t.tracer.Start(ctx, "execute_tool "+tool.Name, trace.WithAttributes(attribute.String("gen_ai.tool.name", tool.Name)))
	return ctx, func(err error) {
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, "the tool failed")
		}
		span.End()
	}
}
