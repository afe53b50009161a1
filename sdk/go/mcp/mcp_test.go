package qwenmcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	qwen "github.com/qwen-agent/qwen/sdk/go"
	qwenmcp "github.com/qwen-agent/qwen/sdk/go/mcp"
)

type sum struct {
	X int `json:"x"`
	Y int `json:"y"`
}

func TestAServerOfTheOfficialSDKWorksInProcess(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "calc", Version: "1"}, nil)
	started, ended := make(chan struct{}), make(chan struct{}, 1)
	mcp.AddTool(server, &mcp.Tool{Name: "add", Description: "Adds"}, func(_ context.Context, _ *mcp.CallToolRequest, in sum) (*mcp.CallToolResult, map[string]int, error) {
		return nil, map[string]int{"sum": in.X + in.Y}, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "wait", Description: "Waits"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		close(started)
		<-ctx.Done()
		ended <- struct{}{}
		return nil, nil, ctx.Err()
	})
	folder := t.TempDir()
	script := filepath.Join(folder, "script.json")
	text, err := json.Marshal([]any{
		[]any{map[string]any{"tool_call": map[string]any{"name": "mcp__calc__add", "arguments": sum{20, 22}}}},
		[]any{map[string]any{"expect": map[string]any{"contains": "42"}}, map[string]any{"text": "It is 42."}},
		[]any{map[string]any{"tool_call": map[string]any{"name": "mcp__calc__wait", "arguments": map[string]any{}}}},
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
	m, err := qwen.Open(ctx, qwen.Options{
		Binary: binary, Model: "script:" + script, Dir: folder, Env: map[string]string{"QWEN_HOME": filepath.Join(folder, "home")},
		Tools: []qwen.ToolServer{qwenmcp.NewServer("calc", server)}, PermissionMode: qwen.ModeYolo,
	})
	must(t, err)
	s, err := m.CreateSession(ctx, qwen.SessionOptions{})
	must(t, err)
	result, err := s.Run(ctx, "Add 20 and 22.")
	must(t, err)
	if result.Text != "It is 42." {
		t.Errorf("%+v", result)
	}
	// A turn that ends takes the calls of the server with it.
	turn, end := context.WithCancel(ctx)
	defer end()
	go func() { <-started; end() }()
	if _, err := s.Run(turn, "Wait."); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-ctx.Done():
		t.Error("the call was not cancelled")
	}
	must(t, m.Close())
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		buffer := make([]byte, 1<<20)
		stacks := string(buffer[:runtime.Stack(buffer, true)])
		if !strings.Contains(stacks, "go-sdk/") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a goroutine is left:\n%s", stacks)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
