package suite

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

func touch(name string) step {
	return call("run_shell_command", step{"command": "touch " + name, "description": "make a file"})
}

func (p *place) exists(name string) bool {
	_, err := os.Stat(filepath.Join(p.work, name))
	return err == nil
}

// decideBy returns options with a permission callback.
func (p *place) decideBy(decide qwen.CanUseTool) qwen.Options {
	options := p.options()
	options.CanUseTool = decide
	return options
}

func TestEveryQuestionReachesTheCallbackAndAllowRunsTheCall(t *testing.T) {
	p := newPlace(t, say(touch("a")), say(touch("b")), say("done"))
	var asked []qwen.PermissionRequest
	type key struct{}
	s := p.session(p.decideBy(func(ctx context.Context, request qwen.PermissionRequest) (qwen.Decision, error) {
		asked = append(asked, request)
		if ctx.Value(key{}) != "mine" {
			t.Error("the callback's context lacks the values of the turn's context")
		}
		return qwen.Allow(), nil
	}))
	result, err := s.Run(context.WithValue(p.ctx(), key{}, "mine"), "Make files.")
	must(t, err)
	if !result.OK() || !p.exists("a") || !p.exists("b") || len(asked) != 2 {
		t.Fatalf("%+v, %d questions", result.Denials, len(asked))
	}
	var input struct{ Command string }
	must(t, json.Unmarshal(asked[0].Input, &input))
	first := asked[0]
	if input.Command != "touch a" || first.ToolName != "run_shell_command" || first.SessionID != s.ID() || first.ToolCallID == "" || first.PromptID == "" {
		t.Errorf("%+v", first)
	}
	if first.Confirmation == nil || first.Confirmation.Type != "exec" || first.Confirmation.Command != "touch a" {
		t.Errorf("%+v", first.Confirmation)
	}
}

func TestDenyRefusesTheCallTellsTheModelAndIsListed(t *testing.T) {
	p := newPlace(t, say(touch("a")), say("I may not."))
	s := p.session(p.decideBy(func(context.Context, qwen.PermissionRequest) (qwen.Decision, error) {
		return qwen.Deny("Not on Tuesdays."), nil
	}))
	result, err := s.Run(p.ctx(), "Make a file.")
	must(t, err)
	if result.OK() || !result.Done() || len(result.Denials) != 1 || p.exists("a") {
		t.Fatalf("%v, %+v", result.Status, result.Denials)
	}
	denial := result.Denials[0]
	if denial.ToolName != "run_shell_command" || !strings.Contains(denial.Reason, "Not on Tuesdays.") || len(denial.Arguments) == 0 {
		t.Errorf("%+v", denial)
	}
	if told := p.texts("tool"); !strings.Contains(strings.Join(told, ""), "Not on Tuesdays.") {
		t.Errorf("%q", told)
	}
}

func TestAskAndTheZeroDecisionAndNoCallbackAreDenials(t *testing.T) {
	for name, decide := range map[string]qwen.CanUseTool{
		"ask":  func(context.Context, qwen.PermissionRequest) (qwen.Decision, error) { return qwen.Ask(), nil },
		"zero": func(context.Context, qwen.PermissionRequest) (qwen.Decision, error) { return qwen.Decision{}, nil },
		"none": nil,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, say(touch("a")), say("Well."))
			result, err := p.session(p.decideBy(decide)).Run(p.ctx(), "Make a file.")
			must(t, err)
			if len(result.Denials) != 1 || p.exists("a") {
				t.Errorf("%+v", result.Denials)
			}
		})
	}
}

func TestACallRunsWithTheInputThatTheCallbackReturned(t *testing.T) {
	p := newPlace(t, say(touch("a")), say("done"))
	s := p.session(p.decideBy(func(context.Context, qwen.PermissionRequest) (qwen.Decision, error) {
		return qwen.AllowWith(map[string]any{"command": "touch b", "description": "make another file"}), nil
	}))
	_, err := s.Run(p.ctx(), "Make a file.")
	must(t, err)
	// Changed input is judged again, and the callback allows it again.
	if p.exists("a") || !p.exists("b") {
		t.Errorf("a: %v, b: %v", p.exists("a"), p.exists("b"))
	}
}

func TestADecisionCanAddRulesAndChangeTheMode(t *testing.T) {
	p := newPlace(t, say(touch("a")), say(touch("b")), say("done"))
	questions := 0
	s := p.session(p.decideBy(func(context.Context, qwen.PermissionRequest) (qwen.Decision, error) {
		questions++
		return qwen.Decision{Behavior: qwen.BehaviorAllow, Rules: []string{"Bash(touch *)"}}, nil
	}))
	_, err := s.Run(p.ctx(), "Make files.")
	must(t, err)
	if questions != 1 || !p.exists("b") {
		t.Errorf("%d questions", questions)
	}
}

func TestRulesOfTheHostDecideBeforeTheCallback(t *testing.T) {
	p := newPlace(t, say(touch("a")), say(touch("b,c")), say("done"))
	options := p.decideBy(func(context.Context, qwen.PermissionRequest) (qwen.Decision, error) {
		t.Error("the callback was asked")
		return qwen.Allow(), nil
	})
	options.Rules = qwen.Rules{Allow: []string{"Bash(touch a)"}, Deny: []string{"Bash(touch b,c)"}}
	result, err := p.session(options).Run(p.ctx(), "Make files.")
	must(t, err)
	if !p.exists("a") || p.exists("b,c") || len(result.Denials) != 1 {
		t.Errorf("%+v", result.Denials)
	}
}

func TestCallbacksAreServedToTheLastCallOfATurn(t *testing.T) {
	replies := []map[string]any{}
	for range 5 {
		replies = append(replies, say(touch("x")))
	}
	p := newPlace(t, append(replies, say("end"))...)
	questions := 0
	m := p.manager(p.decideBy(func(context.Context, qwen.PermissionRequest) (qwen.Decision, error) {
		questions++
		return qwen.Allow(), nil
	}))
	result, err := m.Run(p.ctx(), "Make a file five times.")
	must(t, err)
	if questions != 5 || !result.OK() {
		t.Errorf("%d questions, %+v", questions, result.Denials)
	}
}

func TestAHookRefusesACallAndTheModelIsToldWhy(t *testing.T) {
	p := newPlace(t, say(touch("a")), say("I see."))
	options := p.options()
	options.PermissionMode = qwen.ModeYolo
	var seen qwen.HookInput
	options.Hooks.PreToolUse = []qwen.Hook{{Matcher: "Bash", Run: func(_ context.Context, input qwen.HookInput) (qwen.HookResult, error) {
		seen = input
		return qwen.HookResult{Block: "Frozen for the release."}, nil
	}}}
	_, err := p.session(options).Run(p.ctx(), "Make a file.")
	must(t, err)
	if p.exists("a") || !strings.Contains(strings.Join(p.texts("tool"), ""), "Frozen for the release.") {
		t.Errorf("%q", p.texts("tool"))
	}
	if seen.Event != "PreToolUse" || seen.ToolName != "run_shell_command" || !strings.Contains(string(seen.ToolInput), "touch a") || seen.ToolCallID == "" || seen.PromptID == "" {
		t.Errorf("%+v", seen)
	}
}

func TestAHookChangesTheInputOfACallAndTheOutput(t *testing.T) {
	p := newPlace(t, say(touch("a")), say("done"))
	options := p.options()
	options.PermissionMode = qwen.ModeYolo
	options.Hooks = qwen.Hooks{
		PreToolUse: []qwen.Hook{{Run: func(context.Context, qwen.HookInput) (qwen.HookResult, error) {
			return qwen.HookResult{UpdatedInput: map[string]any{"command": "touch b", "description": "make another file"}}, nil
		}}},
		PostToolUse: []qwen.Hook{{Run: func(_ context.Context, input qwen.HookInput) (qwen.HookResult, error) {
			if len(input.ToolResponse) == 0 {
				t.Error("there is no response")
			}
			return qwen.HookResult{UpdatedOutput: "replaced", AdditionalContext: "and more"}, nil
		}}},
		UserPromptSubmit: []qwen.Hook{{Run: func(_ context.Context, input qwen.HookInput) (qwen.HookResult, error) {
			return qwen.HookResult{AdditionalContext: "prompt was: " + input.Prompt}, nil
		}}},
	}
	_, err := p.session(options).Run(p.ctx(), "Make a file.")
	must(t, err)
	if p.exists("a") || !p.exists("b") || !strings.Contains(strings.Join(p.texts("tool"), ""), "replaced") {
		t.Errorf("%q", p.texts("tool"))
	}
	if !strings.Contains(strings.Join(p.texts("user"), ""), "prompt was: Make a file.") {
		t.Errorf("%q", p.texts("user"))
	}
}

func TestASessionEndHookRunsWhenTheSessionIsClosed(t *testing.T) {
	p := newPlace(t, say("hi"))
	options := p.options()
	ended := make(chan string, 1)
	options.Hooks.SessionEnd = []qwen.Hook{{Run: func(_ context.Context, input qwen.HookInput) (qwen.HookResult, error) {
		ended <- input.Event
		return qwen.HookResult{}, nil
	}}}
	s := p.session(options)
	_, err := s.Run(p.ctx(), "Hello.")
	must(t, err)
	must(t, s.Close())
	select {
	case event := <-ended:
		if event != "SessionEnd" {
			t.Error(event)
		}
	default:
		t.Error("the hook did not run before Close returned")
	}
}

type sum struct {
	X int `json:"x" jsonschema:"The first number"`
	Y int `json:"y"`
}

func calculator(add func(ctx context.Context, in sum) (int, error)) qwen.ToolServer {
	return qwen.NewToolServer("calc", qwen.Tool("add", "Adds two numbers", add).Annotate(map[string]any{"readOnlyHint": true}))
}

func allowTools(options qwen.Options, servers ...qwen.ToolServer) qwen.Options {
	options.Tools = servers
	options.Rules.Allow = []string{"mcp__calc__*"}
	options.PermissionMode = qwen.ModeYolo
	return options
}

func TestAFunctionOfTheHostIsATool(t *testing.T) {
	p := newPlace(t, say(call("mcp__calc__add", sum{2, 3})), say(call("mcp__calc__add", step{"x": "two"})), say(call("mcp__calc__add", sum{0, 0})), say("5"))
	add := func(_ context.Context, in sum) (int, error) {
		if in == (sum{}) {
			return 0, errors.New("nothing to add")
		}
		return in.X + in.Y, nil
	}
	result, err := p.session(allowTools(p.options(), calculator(add))).Run(p.ctx(), "Add.")
	must(t, err)
	told := p.texts("tool")
	if len(told) != 3 || told[0] != "5" || !strings.Contains(told[1], "/x") || !strings.Contains(told[2], "nothing to add") {
		t.Errorf("%q, %+v", told, result.Denials)
	}
	if len(result.ToolCalls) != 3 || result.ToolCalls[0].Name != "mcp__calc__add" || string(result.ToolCalls[0].Arguments) == "" {
		t.Errorf("%+v", result.ToolCalls)
	}
}

func TestToolsOfOneMessageRunInTheOrderThatTheModelWrote(t *testing.T) {
	p := newPlace(t, say(call("mcp__calc__add", sum{1, 1}), call("mcp__calc__add", sum{2, 2})), say("both"))
	var mu sync.Mutex
	var order []int
	note := func(number int) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, number)
	}
	add := func(_ context.Context, in sum) (int, error) {
		note(in.X)
		defer note(-in.X)
		return in.X + in.Y, nil
	}
	_, err := p.session(allowTools(p.options(), calculator(add))).Run(p.ctx(), "Add twice.")
	must(t, err)
	if told := p.texts("tool"); len(told) != 2 || told[0] != "2" || told[1] != "4" {
		t.Errorf("%q", told)
	}
	if !slices.Equal(order, []int{1, -1, 2, -2}) {
		t.Errorf("%v", order)
	}
}

func TestAToolsContextEndsWithItsTurn(t *testing.T) {
	p := newPlace(t, say(call("mcp__calc__add", sum{1, 1})), say("again"))
	started, ended := make(chan struct{}), make(chan error, 1)
	add := func(ctx context.Context, _ sum) (int, error) {
		close(started)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return 0, ctx.Err()
	}
	s := p.session(allowTools(p.options(), calculator(add)))
	ctx, cancel := context.WithCancel(p.ctx())
	go func() { <-started; cancel() }()
	if _, err := s.Run(ctx, "Add."); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if cause := <-ended; cause == nil {
		t.Error("the tool's context has no cause")
	}
	again, err := s.Run(p.ctx(), "Again.")
	if err != nil || again.Text != "again" {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestACallbackThatFailsOrPanicsIsADenialAndTheTurnContinues(t *testing.T) {
	for name, decide := range map[string]qwen.CanUseTool{
		"error": func(context.Context, qwen.PermissionRequest) (qwen.Decision, error) {
			return qwen.Allow(), errors.New("secret-detail")
		},
		"panic": func(context.Context, qwen.PermissionRequest) (qwen.Decision, error) { panic("secret-detail") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, say(touch("a")), say("never mind"))
			options := p.decideBy(decide)
			records := newRecorder()
			options.Logger = slog.New(records)
			result, err := p.session(options).Run(p.ctx(), "Make a file.")
			must(t, err)
			if result.Text != "never mind" || len(result.Denials) != 1 || p.exists("a") {
				t.Errorf("%q, %+v", result.Text, result.Denials)
			}
			if told := strings.Join(p.texts("tool"), ""); strings.Contains(told, "secret-detail") {
				t.Errorf("the model was told the host's error: %q", told)
			}
			if records.count("callback failed") != 1 {
				t.Error("the host's logger was not told")
			}
		})
	}
}

func TestAToolThatPanicsIsAFailureAndTheTurnContinues(t *testing.T) {
	p := newPlace(t, say(call("mcp__calc__add", sum{1, 1})), say("never mind"))
	add := func(context.Context, sum) (int, error) { panic("secret-detail") }
	result, err := p.session(allowTools(p.options(), calculator(add))).Run(p.ctx(), "Add.")
	must(t, err)
	if told := strings.Join(p.texts("tool"), ""); result.Text != "never mind" || strings.Contains(told, "secret-detail") {
		t.Errorf("%q, %q", result.Text, told)
	}
}

func TestACallbackThatNeverReturnsIsADenialAtItsDeadline(t *testing.T) {
	p := newPlace(t, say(touch("a")), say("never mind"))
	release, late := make(chan struct{}), make(chan error, 1)
	options := p.decideBy(func(ctx context.Context, _ qwen.PermissionRequest) (qwen.Decision, error) {
		<-ctx.Done()
		late <- context.Cause(ctx)
		<-release
		return qwen.Allow(), nil
	})
	options.Timeouts.Callback = 100 * time.Millisecond
	s := p.session(options)
	result, err := s.Run(p.ctx(), "Make a file.")
	must(t, err)
	if result.Text != "never mind" || len(result.Denials) != 1 || p.exists("a") {
		t.Errorf("%q, %+v", result.Text, result.Denials)
	}
	if cause := <-late; cause == nil {
		t.Error("the context of the callback has not ended")
	}
	close(release)
}

func TestAnAnswerAfterTheDeadlineChangesNothingAndAnswersNoOtherQuestion(t *testing.T) {
	p := newPlace(t, say(touch("a")), say(touch("b")), say("end"))
	second, first := make(chan struct{}), make(chan struct{})
	questions := 0
	var mu sync.Mutex
	options := p.decideBy(func(_ context.Context, request qwen.PermissionRequest) (qwen.Decision, error) {
		mu.Lock()
		questions++
		number := questions
		mu.Unlock()
		if number == 1 {
			// It allows, once the second question is open.
			<-second
			defer close(first)
			return qwen.Allow(), nil
		}
		close(second)
		<-first
		return qwen.Deny("no"), nil
	})
	options.Timeouts.Callback = 300 * time.Millisecond
	result, err := p.session(options).Run(p.ctx(), "Make files.")
	must(t, err)
	if len(result.Denials) != 2 || p.exists("a") || p.exists("b") {
		t.Errorf("%+v", result.Denials)
	}
}
