package suite

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

func TestOptionsOfATurnReachTheModel(t *testing.T) {
	p := newPlace(t, say("one"), say(call("structured_output", step{"ok": true})))
	picture := []byte("\x89PNG\r\n\x1a\n")
	file := p.file("notes.txt", "remember the milk")
	s := p.session(p.options())
	options := []qwen.TurnOption{
		qwen.WithModel("turn-model"), qwen.WithTemperature(0.25), qwen.WithMaxTokens(77), qwen.WithEffort("low"), qwen.WithTools("read_file"),
		qwen.WithImage(picture, "image/png"), qwen.WithFile(file),
	}
	_, err := s.Run(p.ctx(), "Look.", options...)
	must(t, err)
	body := string(p.control(http.MethodGet, "requests"))
	for _, wanted := range []string{`"model":"turn-model"`, `"temperature":0.25`, `77`, "iVBORw0KGgo", "remember the milk"} {
		if !strings.Contains(body, wanted) {
			t.Errorf("the request lacks %s: %.2000s", wanted, body)
		}
	}
	if tools := p.requests()[0].Tools; len(tools) != 1 || tools[0].Function.Name != "read_file" {
		t.Errorf("%+v", tools)
	}
	result, err := s.Run(p.ctx(), "As data.", qwen.WithSchema(json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)))
	must(t, err)
	var value struct{ OK bool }
	if err := result.Decode(&value); err != nil || !value.OK {
		t.Errorf("%s, %v", result.Output, err)
	}
	var runner qwen.Runner = s
	if _, err := runner.Run(p.ctx(), "/help"); err != nil {
		t.Error(err)
	}
}

func TestMessagesOfEveryKindArrive(t *testing.T) {
	p := newPlace(t,
		say(step{"thought": "I look."}, call("run_shell_command", step{"command": "echo shown", "description": "show"})),
		step{"steps": []any{step{"status": 503, "headers": step{"retry-after": "0"}, "body": "busy"}}},
		say("done"))
	options := p.options()
	options.PermissionMode = qwen.ModeYolo
	messages := collect(t, p.session(options).Stream(p.ctx(), "Show."))
	var shown strings.Builder
	for _, output := range only[*qwen.Terminal](messages) {
		shown.WriteString(output.Text)
	}
	if !strings.Contains(shown.String(), "shown") || len(only[*qwen.Thought](messages)) == 0 || len(only[*qwen.ToolCallDelta](messages)) == 0 {
		t.Errorf("%q", shown.String())
	}
	statuses := only[*qwen.ToolStatus](messages)
	if len(statuses) == 0 || statuses[len(statuses)-1].Status != "success" || statuses[len(statuses)-1].Display == nil {
		t.Errorf("%+v", statuses)
	}
	events := map[string]bool{}
	for _, event := range only[*qwen.SessionEvent](messages) {
		events[event.Event] = true
	}
	if !events["Retry"] || !events["Finished"] {
		t.Errorf("%v", events)
	}
	for _, message := range messages {
		if _, isNotice := message.(*qwen.Notice); isNotice {
			t.Errorf("%+v", message)
		}
	}
	var calls []qwen.ToolCall = only[*qwen.Assistant](messages)[0].ToolCalls
	if len(calls) != 1 || calls[0].Name != "run_shell_command" {
		t.Errorf("%+v", calls)
	}
	meta := messages[0].Info()
	var copied qwen.Meta = *meta
	if text, err := json.Marshal(copied.Raw); err != nil || string(text) != meta.Raw.String() {
		t.Errorf("%s, %v", text, err)
	}
}

func TestTheModelIsToldAboutTheRulesOfTheHost(t *testing.T) {
	p := newPlace(t, say("read"))
	options := p.options()
	options.Rules.Description = "Deployments need a ticket."
	s, err := p.manager(options).CreateSession(p.ctx(), qwen.SessionOptions{})
	must(t, err)
	_, err = s.Run(p.ctx(), "hi")
	must(t, err)
	if sent := string(p.control(http.MethodGet, "requests")); !strings.Contains(sent, "policy of the host: Deployments need a ticket.") {
		t.Error(sent)
	}
}

func TestSettingsFilesCountOnlyIfTheyAreNamed(t *testing.T) {
	for name, source := range map[string]qwen.SettingSource{"none": "", "user": qwen.SourceUser} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			must(t, os.MkdirAll(filepath.Join(p.home, ".qwen"), 0o700))
			must(t, os.WriteFile(filepath.Join(p.home, ".qwen", "settings.json"), []byte(`{"permissions":{"deny":["Bash(curl *)"]}}`), 0o600))
			options := p.options()
			if source != "" {
				options.Settings.Sources = []qwen.SettingSource{source, qwen.SourceProject, qwen.SourceLocal}
			}
			m := p.manager(options)
			answer, err := m.Run(p.ctx(), "/permissions")
			must(t, err)
			if hasRule := strings.Contains(answer.Raw.String(), "curl"); hasRule != (source != "") {
				t.Errorf("%s", answer.Raw)
			}
			if !strings.HasPrefix(m.Program(), "qwen-") {
				t.Error(m.Program())
			}
		})
	}
}

func TestOptionsThatCanNeverWorkAreErrorsBeforeAProcessStarts(t *testing.T) {
	checkLeaks(t)
	run := func(context.Context, sum) (int, error) { return 0, nil }
	type endless struct{ Next *endless }
	for name, options := range map[string]qwen.Options{
		"mode":     {PermissionMode: "anything"},
		"folder":   {Dir: "/no/such/folder"},
		"policy":   {OnCrash: "shrug"},
		"source":   {Settings: qwen.Settings{Sources: []qwen.SettingSource{"moon"}}},
		"hook":     {Hooks: qwen.Hooks{Stop: []qwen.Hook{{}}}},
		"server":   {Tools: []qwen.ToolServer{qwen.NewToolServer("a__b")}},
		"twice":    {Tools: []qwen.ToolServer{qwen.NewToolServer("a"), qwen.MCPCommand("a", "true")}},
		"tool":     {Tools: []qwen.ToolServer{qwen.NewToolServer("a", qwen.Tool("b c", "", run))}},
		"same":     {Tools: []qwen.ToolServer{qwen.NewToolServer("a", qwen.Tool("b", "", run), qwen.Tool("b", "", run))}},
		"empty":    {Tools: []qwen.ToolServer{qwen.NewToolServer("a", qwen.ToolDefinition{})}},
		"schema":   {Tools: []qwen.ToolServer{qwen.NewToolServer("a", qwen.Tool("b", "", func(context.Context, chan int) (int, error) { return 0, nil }))}},
		"endless":  {Tools: []qwen.ToolServer{qwen.NewToolServer("a", qwen.Tool("b", "", func(context.Context, endless) (int, error) { return 0, nil }))}},
		"no dial":  {Tools: []qwen.ToolServer{qwen.NewMCPServer("a", nil)}},
		"bad name": {Tools: []qwen.ToolServer{qwen.MCPHTTP("", "http://127.0.0.1:1/", nil)}},
	} {
		if m, err := qwen.Open(testContext(t), options); err == nil {
			t.Errorf("%s is accepted", name)
			m.Close()
		}
	}
}

func TestFurtherDirectoriesMayHaveCommasInTheirNames(t *testing.T) {
	folders := []string{filepath.Join(t.TempDir(), "a,b"), filepath.Join(t.TempDir(), "c, d")}
	var replies []map[string]any
	for i, folder := range folders {
		must(t, os.MkdirAll(folder, 0o755))
		file := filepath.Join(folder, "seen.txt")
		must(t, os.WriteFile(file, []byte("content-"+string(rune('0'+i))), 0o644))
		replies = append(replies, say(call("read_file", step{"file_path": file})))
	}
	p := newPlace(t, append(replies, say("Done."))...)
	options := p.options()
	options.Worker.Dirs = folders
	r, err := p.session(options).Run(p.ctx(), "Read.")
	must(t, err)
	if !r.OK() {
		t.Errorf("%+v", r.Denials)
	}
	body := string(p.control(http.MethodGet, "requests"))
	for _, wanted := range []string{"content-0", "content-1"} {
		if !strings.Contains(body, wanted) {
			t.Errorf("the model did not get %s", wanted)
		}
	}
}

// echoConnection is an MCP server that is written by hand.
type echoConnection struct{ closed chan struct{} }

func (c *echoConnection) Handle(_ context.Context, message json.RawMessage) (json.RawMessage, error) {
	var request struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ProtocolVersion string
		}
	}
	if err := json.Unmarshal(message, &request); err != nil || request.ID == nil {
		return nil, err
	}
	results := map[string]any{
		"initialize": step{"protocolVersion": request.Params.ProtocolVersion, "capabilities": step{"tools": step{}}, "serverInfo": step{"name": "echo", "version": "1"}},
		"tools/list": step{"tools": []any{step{"name": "echo", "description": "Echoes", "inputSchema": step{"type": "object"}}}},
		"tools/call": qwen.ToolResult{Content: []qwen.ToolContent{{Type: "text", Text: "echoed"}}},
	}
	return json.Marshal(step{"jsonrpc": "2.0", "id": request.ID, "result": results[request.Method]})
}

func (c *echoConnection) Close() error { close(c.closed); return nil }

func TestAnyMCPServerInTheProcessIsAToolServer(t *testing.T) {
	p := newPlace(t, say(call("mcp__echo__echo", step{}), call("mcp__rich__show", step{})), say("done"))
	connection := &echoConnection{make(chan struct{})}
	options := p.options()
	options.PermissionMode = qwen.ModeYolo
	show := qwen.Tool("show", "Shows", func(context.Context, struct{}) (*qwen.ToolResult, error) {
		return &qwen.ToolResult{Content: []qwen.ToolContent{{Type: "text", Text: "rich"}}}, nil
	})
	options.Tools = []qwen.ToolServer{
		qwen.NewMCPServer("echo", func() (qwen.MCPConnection, error) { return connection, nil }),
		qwen.NewToolServer("rich", show),
	}
	s := p.session(options)
	_, err := s.Run(p.ctx(), "Echo.")
	must(t, err)
	if told := strings.Join(p.texts("tool"), " "); !strings.Contains(told, "echoed") || !strings.Contains(told, "rich") {
		t.Errorf("%q", told)
	}
	must(t, s.Close())
	<-connection.closed
}

func TestAnOverloadedPoolIsAnErrorThatTellsWhenToTryAgain(t *testing.T) {
	p := newLoopingPlace(t, say("half", gate("held")))
	options := p.options()
	options.Pool = qwen.Pool{MaxWorkers: 1, MaxQueue: 1}
	m := p.manager(options)
	failures := make(chan error, 4)
	for range 4 {
		s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{})
		must(t, err)
		go func() {
			_, err := s.Run(p.ctx(), "Work.")
			failures <- err
		}()
	}
	err := <-failures
	var refused *qwen.TurnError
	if !errors.Is(err, qwen.ErrOverloaded) || !errors.As(err, &refused) || !refused.Retryable || refused.RetryAfter <= 0 {
		t.Errorf("%v, %+v", err, refused)
	}
	must(t, m.Close())
	for range 3 {
		<-failures
	}
}

func TestARequestThatIsNotAnsweredIsATimeoutWithItsName(t *testing.T) {
	p := newPlace(t, say("half", gate("never")))
	options := p.options()
	options.Timeouts.Request = 300 * time.Millisecond
	options.OnCrash = qwen.CrashError
	options.Limits.MaxBudgetUSD = 0
	m := p.manager(options)
	s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{})
	must(t, err)
	for message, err := range s.Stream(p.ctx(), "Work.") {
		if err != nil {
			break
		}
		if _, ok := message.(*qwen.Text); !ok {
			continue
		}
		stopped := stopAll(t, children(m.PID()))
		err := s.SetModel(p.ctx(), "x")
		stopped()
		var late *qwen.TimeoutError
		if !errors.As(err, &late) || late.Name != "Request" || !late.Timeout() {
			t.Errorf("%v", err)
		}
		break
	}
}

func TestConstantsOfTheWireAreWhatTheWorkerUses(t *testing.T) {
	if qwen.StatusBudget != "budget" || qwen.BehaviorDeny != "deny" || qwen.BehaviorAsk != "ask" || qwen.SourceLocal != "local" || qwen.SourceProject != "project" {
		t.Error("a constant has changed")
	}
	var denial qwen.Denial
	var rewound qwen.Rewound
	if denial.Reason != "" || rewound.Files != nil {
		t.Error("zero values are not empty")
	}
}
