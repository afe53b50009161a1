package qwenotel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	qwen "github.com/qwen-agent/qwen/sdk/go"
	qwenotel "github.com/qwen-agent/qwen/sdk/go/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestOneTraceLeadsFromTheSpanOfTheHostToTheToolAndTurnsAreCounted(t *testing.T) {
	folder := t.TempDir()
	script, workerSpans := filepath.Join(folder, "script.json"), filepath.Join(folder, "spans.jsonl")
	text, err := json.Marshal([]any{
		[]any{map[string]any{"tool_call": map[string]any{"name": "mcp__calc__add", "arguments": map[string]int{"x": 1, "y": 2}}}},
		[]any{map[string]any{"text": "3"}},
	})
	must(t, err)
	must(t, os.WriteFile(script, text, 0o600))
	_, file, _, _ := runtime.Caller(0)
	binary := os.Getenv("QWEN_BIN")
	if binary == "" {
		binary = filepath.Join(filepath.Dir(file), "../../../target/debug/qwen")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	spans := tracetest.NewInMemoryExporter()
	tracers := trace.NewTracerProvider(trace.WithSyncer(spans))
	reader := metric.NewManualReader()
	telemetry := qwenotel.NewWith(tracers, metric.NewMeterProvider(metric.WithReader(reader)))
	type sum struct {
		X int `json:"x"`
		Y int `json:"y"`
	}
	add := qwen.Tool("add", "Adds", func(_ context.Context, in sum) (int, error) { return in.X + in.Y, nil })
	m, err := qwen.Open(ctx, qwen.Options{
		Binary: binary, Model: "script:" + script, Dir: folder, Env: map[string]string{"QWEN_HOME": filepath.Join(folder, "home")},
		Tools: []qwen.ToolServer{qwen.NewToolServer("calc", add)}, PermissionMode: qwen.ModeYolo, Telemetry: telemetry,
		Worker: qwen.WorkerOptions{Args: []string{"--telemetry", "--telemetry-outfile=" + workerSpans}},
	})
	must(t, err)
	host, span := tracers.Tracer("host").Start(ctx, "request")
	_, err = m.Run(host, "Add.")
	must(t, err)
	span.End()
	must(t, m.Close())

	trace := span.SpanContext().TraceID().String()
	names := map[string]bool{}
	for _, each := range spans.GetSpans() {
		names[each.Name] = true
		if each.SpanContext.TraceID().String() != trace {
			t.Errorf("%s is in another trace", each.Name)
		}
	}
	if !names["qwen.turn"] || !names["execute_tool add"] {
		t.Errorf("%v", names)
	}
	written, err := os.ReadFile(workerSpans)
	must(t, err)
	if !bytes.Contains(written, []byte(trace)) {
		t.Errorf("the worker's spans are in another trace: %.500s", written)
	}
	var counted metricdata.ResourceMetrics
	must(t, reader.Collect(ctx, &counted))
	found := map[string]bool{}
	for _, scope := range counted.ScopeMetrics {
		for _, each := range scope.Metrics {
			found[each.Name] = true
		}
	}
	if !found["qwen.sdk.turns"] || !found["qwen.sdk.turn.duration"] || !found["qwen.sdk.tokens"] {
		t.Errorf("%v", found)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
