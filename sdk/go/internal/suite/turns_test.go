package suite

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

func TestAQueryYieldsMessagesAndEndsWithTheResult(t *testing.T) {
	p := newPlace(t, say("It ", "works.", step{"usage": step{"prompt_tokens": 12, "completion_tokens": 3}}))
	m := p.manager(p.options())
	messages := collect(t, m.Stream(p.ctx(), "Does it work?"))
	result, ok := messages[len(messages)-1].(*qwen.Result)
	if !ok {
		t.Fatalf("the last message is %T", messages[len(messages)-1])
	}
	if result.Text != "It works." || result.Status != qwen.StatusDone || !result.Done() || !result.OK() || result.Err() != nil {
		t.Errorf("%+v", result)
	}
	if result.Usage.InputTokens != 12 || result.Usage.OutputTokens != 3 || result.Usage.Calls != 1 || result.ModelCalls != 1 {
		t.Errorf("%+v", result.Usage)
	}
	said := only[*qwen.Assistant](messages)
	if len(said) != 1 || said[0].Text != "It works." || said[0].FinishReason != "stop" {
		t.Errorf("%+v", said)
	}
	if messages[len(messages)-2] != qwen.Message(said[0]) {
		t.Errorf("the final answer is not the message before the result")
	}
	if info := result.Info(); info.SessionID == "" || info.PromptID == "" || len(info.Raw) == 0 {
		t.Errorf("%+v", info)
	}
}

func TestTextArrivesInPiecesThatJoinedAreTheTextOfTheResult(t *testing.T) {
	pieces := []string{"Plain, ", "with \"quotes\" and \\ and \n, ", "完了 🎉, ", `"delta":{"content":"`, "\u2028 end"}
	p := newPlace(t, say(pieces[0], pieces[1], pieces[2], pieces[3], pieces[4]))
	messages := collect(t, p.session(p.options()).Stream(p.ctx(), "Go."))
	var joined strings.Builder
	texts := only[*qwen.Text](messages)
	for _, text := range texts {
		joined.WriteString(text.Text)
	}
	result := messages[len(messages)-1].(*qwen.Result)
	if len(texts) < len(pieces) || joined.String() != strings.Join(pieces, "") || result.Text != joined.String() {
		t.Errorf("%d pieces: %q, result %q", len(texts), joined.String(), result.Text)
	}
}

func TestPromptsOfASessionContinueOneConversation(t *testing.T) {
	p := newPlace(t, say("Hello Ada."), say("Your name is Ada."))
	s := p.session(p.options())
	for _, prompt := range []string{"My name is Ada.", "What is my name?"} {
		_, err := s.Run(p.ctx(), prompt)
		must(t, err)
	}
	history := strings.Join(p.texts("user", "assistant"), "\n")
	for _, wanted := range []string{"My name is Ada.", "Hello Ada.", "What is my name?"} {
		if !strings.Contains(history, wanted) {
			t.Errorf("the model did not see %q: %s", wanted, history)
		}
	}
	if last := s.LastResult(); last == nil || last.Text != "Your name is Ada." {
		t.Errorf("%+v", last)
	}
}

func TestPromptsOfAChannelEachGetTheirResult(t *testing.T) {
	p := newPlace(t, say("one"), say("two"), say("three"))
	s := p.session(p.options())
	prompts := make(chan string, 3)
	prompts <- "1"
	prompts <- "2"
	var texts []string
	for message, err := range s.StreamAll(p.ctx(), prompts) {
		must(t, err)
		if result, ok := message.(*qwen.Result); ok {
			texts = append(texts, result.Text)
			if len(texts) == 2 {
				// A prompt that waits for results.
				prompts <- "3"
				close(prompts)
			}
		}
	}
	if !slices.Equal(texts, []string{"one", "two", "three"}) {
		t.Errorf("%q", texts)
	}
}

func TestSteerJoinsTheRunningTurnBeforeItsNextModelCall(t *testing.T) {
	p := newPlace(t, say("Reading.", gate("held"), call("read_file", step{"file_path": "a.txt"})), say("Both done."), say("Alone."))
	p.file("a.txt", "alpha")
	options := p.options()
	records := newRecorder()
	options.Logger = slog.New(records)
	s := p.session(options)
	outcome := make(chan qwen.SteerOutcome, 1)
	var result *qwen.Result
	hasSteered := false
	for message, err := range s.Stream(p.ctx(), "Read a.txt.") {
		must(t, err)
		if _, ok := message.(*qwen.Text); ok && !hasSteered {
			hasSteered = true
			go func() {
				steered, err := s.Steer(p.ctx(), "And mention beta.")
				if err != nil {
					t.Error(err)
				}
				outcome <- steered
			}()
			until(t, "the prompt is sent", func() bool { return records.count("prompt sent") == 2 })
			// The worker reads its input in order: with this answer it has the prompt.
			_, err := s.Request(p.ctx(), "mcp_status", nil)
			must(t, err)
			p.open("held")
		}
		if last, ok := message.(*qwen.Result); ok {
			result = last
		}
	}
	steered := <-outcome
	if !steered.Joined {
		t.Fatalf("%+v", steered)
	}
	if steered.Result != nil || result.Text != "Both done." {
		t.Errorf("%+v, %q", steered, result.Text)
	}
	if users := p.texts("user"); !strings.Contains(users[len(users)-1], "And mention beta.") {
		t.Errorf("%q", users)
	}
	// Without a running turn it is an ordinary prompt.
	alone, err := s.Steer(p.ctx(), "Anything else?")
	if err != nil || alone.Joined || alone.Result == nil || alone.Result.Text != "Alone." {
		t.Errorf("%+v, %v", alone, err)
	}
}

func TestASlashCommandHasAResultAndCallsNoModel(t *testing.T) {
	p := newPlace(t)
	s := p.session(p.options())
	messages := collect(t, s.Stream(p.ctx(), "/help"))
	commands := only[*qwen.Command](messages)
	result := messages[len(messages)-1].(*qwen.Result)
	if len(commands) != 1 || !slices.Equal(commands[0].Path, []string{"help"}) || commands[0].Outcome.Type != "message" {
		t.Errorf("%+v", commands)
	}
	if !result.Done() || !strings.Contains(result.Text, "help") {
		t.Errorf("%+v", result)
	}
	if _, err := s.Run(p.ctx(), "/no-such-command"); err == nil {
		t.Error("an unknown command is not an error")
	}
	if requests := p.requests(); len(requests) != 0 {
		t.Errorf("%d requests to the model", len(requests))
	}
}

func TestInterruptEndsTheTurnAsCancelledAndTheSessionContinues(t *testing.T) {
	p := newPlace(t, say("Working", gate("never")), say("Still here."))
	s := p.session(p.options())
	var result *qwen.Result
	for message, err := range s.Stream(p.ctx(), "Work.") {
		must(t, err)
		switch message := message.(type) {
		case *qwen.Text:
			must(t, s.Interrupt(p.ctx()))
		case *qwen.Result:
			result = message
		}
	}
	if result == nil || result.Status != qwen.StatusCancelled || result.Done() || !errors.Is(result.Err(), qwen.ErrInterrupted) {
		t.Fatalf("%+v", result)
	}
	again, err := s.Run(p.ctx(), "Are you there?")
	if err != nil || again.Text != "Still here." {
		t.Errorf("%+v, %v", again, err)
	}
	must(t, s.Interrupt(p.ctx()))
}

func TestModelAndPermissionModeChangeWithinASession(t *testing.T) {
	p := newPlace(t, say("1"), say("2"), say(call("write_file", step{"file_path": "made.txt", "content": "x"})), say("written"))
	s := p.session(p.options())
	_, err := s.Run(p.ctx(), "One.")
	must(t, err)
	must(t, s.SetModel(p.ctx(), "other-model"))
	_, err = s.Run(p.ctx(), "Two.")
	must(t, err)
	requests := p.requests()
	if requests[0].Model != "mock" || requests[1].Model != "other-model" {
		t.Errorf("%s, then %s", requests[0].Model, requests[1].Model)
	}
	must(t, s.SetPermissionMode(p.ctx(), qwen.ModeAutoEdit))
	result, err := s.Run(p.ctx(), "Write made.txt.")
	must(t, err)
	if _, err := os.Stat(filepath.Join(p.work, "made.txt")); err != nil || !result.OK() {
		t.Errorf("%v, %+v", err, result.Denials)
	}
	var refused *qwen.RequestError
	if err := s.SetPermissionMode(p.ctx(), "anything"); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}

func TestALimitEndsTheTurnWithItsCauseAndWhatThereIs(t *testing.T) {
	look := call("list_directory", step{"path": "."})
	for name, each := range map[string]struct {
		limits qwen.Limits
		status qwen.Status
	}{
		"turns": {qwen.Limits{MaxTurns: 1}, qwen.StatusMaxTurns},
		"calls": {qwen.Limits{MaxToolCalls: 1}, qwen.StatusMaxToolCalls},
		"words": {qwen.Limits{MaxTokens: 5}, qwen.StatusMaxTokens},
		"clock": {qwen.Limits{MaxWallTime: time.Millisecond}, qwen.StatusMaxWallTime},
	} {
		t.Run(name, func(t *testing.T) {
			usage := step{"usage": step{"prompt_tokens": 10, "completion_tokens": 10}}
			p := newLoopingPlace(t, say("Looking.", look, usage))
			options := p.options()
			options.Limits = each.limits
			result, err := p.session(options).Run(p.ctx(), "Look around.")
			var failed *qwen.TurnError
			if !errors.As(err, &failed) || failed.Status != each.status || failed.Result != result || result == nil {
				t.Fatalf("%+v, %v", result, err)
			}
			if result.Status != each.status {
				t.Errorf("%+v", result)
			}
		})
	}
}

func TestAPromptThatIsRefusedIsAnErrorAndNotAHang(t *testing.T) {
	p := newPlace(t, say("one"), say("two"))
	s := p.session(p.options())
	_, err := s.Run(p.ctx(), "One.", qwen.WithPromptID("p-1"))
	must(t, err)
	result, err := s.Run(p.ctx(), "One.", qwen.WithPromptID("p-1"))
	var refused *qwen.TurnError
	if !errors.As(err, &refused) || refused.Code != "duplicate_prompt_id" {
		t.Errorf("%+v, %v", result, err)
	}
	again, err := s.Run(p.ctx(), "Two.")
	if err != nil || again.Text != "two" {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestAPromptMayBeAnImageAloneAndIsNeverEmpty(t *testing.T) {
	p := newPlace(t, say("A picture."))
	s := p.session(p.options())
	if _, err := s.Run(p.ctx(), ""); err == nil || !strings.Contains(err.Error(), "the prompt is empty") {
		t.Errorf("%v", err)
	}
	r, err := s.Run(p.ctx(), "", qwen.WithImage([]byte("\x89PNG\r\n\x1a\n"), "image/png"))
	if err != nil || r.Text != "A picture." {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestUsageIsOnEveryResultByModelAndOfFailedTurnsToo(t *testing.T) {
	usage := step{"usage": step{"prompt_tokens": 20, "completion_tokens": 4}}
	p := newPlace(t,
		say(call("list_directory", step{"path": "."}), usage),
		step{"steps": []any{step{"status": 400, "body": `{"error":{"message":"no"}}`}}},
	)
	result, err := p.session(p.options()).Run(p.ctx(), "Look.")
	if err == nil || result == nil || result.Status != qwen.StatusError || result.Error == nil {
		t.Fatalf("%+v, %v", result, err)
	}
	if result.Usage.InputTokens != 20 || result.UsageByModel["mock"].OutputTokens != 4 {
		t.Errorf("%+v, %+v", result.Usage, result.UsageByModel)
	}
}

func TestWhatEachSubAgentSpentIsCountedByName(t *testing.T) {
	start := step{"description": "look", "prompt": "Look", "subagent_type": "explore"}
	p := newPlace(t, say(call("agent", start)), say("Seen."), say("Done."))
	result, err := p.session(p.options()).Run(p.ctx(), "Go.")
	must(t, err)
	var spent qwen.AgentUsage = result.UsageByAgent["explore"]
	if spent.Runs != 1 || spent.Calls != 1 || spent.ToolCalls != 0 || spent.TotalTokens == 0 || spent.TotalTokens >= result.Usage.TotalTokens {
		t.Errorf("%+v of %+v", spent, result.Usage)
	}
}

type answer struct {
	City  string   `json:"city" jsonschema:"The capital"`
	Size  int      `json:"size"`
	Notes []string `json:"notes,omitempty"`
}

func TestStructuredOutputIsACheckedValueOrAnError(t *testing.T) {
	p := newLoopingPlace(t, say(call("structured_output", step{"city": "Paris", "size": 2})))
	s := p.session(p.options())
	value, result, err := qwen.RunAs[answer](p.ctx(), s, "The capital of France?")
	if err != nil || value.City != "Paris" || value.Size != 2 {
		t.Fatalf("%+v, %+v, %v", value, result, err)
	}
	var decoded answer
	if err := result.Decode(&decoded); err != nil || decoded.City != "Paris" {
		t.Errorf("%+v, %v", decoded, err)
	}
}

func TestStructuredOutputThatDoesNotComeIsAnError(t *testing.T) {
	p := newLoopingPlace(t, say("I would rather talk."))
	value, result, err := qwen.RunAs[answer](p.ctx(), p.session(p.options()), "The capital of France?")
	if !errors.Is(err, qwen.ErrStructuredOutput) || value.City != "" {
		t.Errorf("%+v, %+v, %v", value, result, err)
	}
	if err := result.Decode(&value); !errors.Is(err, qwen.ErrStructuredOutput) {
		t.Errorf("%v", err)
	}
}

func TestAgentsOfTheHostAreOfferedAndTheirWorkCountsForTheTurn(t *testing.T) {
	usage := step{"usage": step{"prompt_tokens": 10, "completion_tokens": 1}}
	p := newPlace(t,
		say(call("agent", step{"description": "look", "prompt": "Look.", "subagent_type": "scout"}), usage),
		say("I am the scout.", usage), say("The scout is back.", usage))
	options := p.options()
	options.Agents = map[string]qwen.Agent{"scout": {Description: "Scouts ahead", Prompt: "You are a scout.", Tools: []string{"read_file"}}}
	options.PermissionMode = qwen.ModeYolo
	result, err := p.session(options).Run(p.ctx(), "Send the scout.")
	must(t, err)
	if result.Text != "The scout is back." || result.Usage.InputTokens != 30 || result.ModelCalls != 3 {
		t.Errorf("%q, %+v, %d calls", result.Text, result.Usage, result.ModelCalls)
	}
}

func TestWaitingForPromptsOfAChannelCostsNoProcessorTime(t *testing.T) {
	p := newPlace(t, say("one", gate("held")))
	s := p.session(p.options())
	prompts := make(chan string, 1)
	prompts <- "1"
	var before, after time.Duration
	for message, err := range s.StreamAll(p.ctx(), prompts) {
		must(t, err)
		if _, ok := message.(*qwen.Text); ok {
			before = processorTime()
			go func() {
				time.Sleep(300 * time.Millisecond)
				after = processorTime()
				close(prompts)
				p.open("held")
			}()
		}
	}
	if used := after - before; used > 150*time.Millisecond {
		t.Errorf("%v while nothing happened for 300 ms", used)
	}
}
