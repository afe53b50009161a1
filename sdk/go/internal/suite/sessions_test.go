package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

func TestASessionContinuesInANewWorkerWithItsHistory(t *testing.T) {
	p := newPlace(t, say("Hello Ada."), say("Your name is Ada."))
	m := p.manager(p.options())
	s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{ID: "chosen-id"})
	must(t, err)
	if s.ID() != "chosen-id" {
		t.Error(s.ID())
	}
	_, err = s.Run(p.ctx(), "My name is Ada.")
	must(t, err)
	must(t, s.Close())
	other := p.manager(p.options())
	resumed, err := other.ResumeSession(p.ctx(), "chosen-id", qwen.SessionOptions{})
	must(t, err)
	_, err = resumed.Run(p.ctx(), "What is my name?")
	must(t, err)
	if history := strings.Join(p.texts("user", "assistant"), "\n"); !strings.Contains(history, "Hello Ada.") {
		t.Errorf("%q", history)
	}
}

func TestAnUnknownIDIsAnErrorAndNotAnEmptySession(t *testing.T) {
	p := newPlace(t)
	m := p.manager(p.options())
	for _, id := range []string{"no-such-session", "", "../escape", "a b"} {
		if _, err := m.ResumeSession(p.ctx(), id, qwen.SessionOptions{}); !errors.Is(err, qwen.ErrSessionNotFound) {
			t.Errorf("resume %q: %v", id, err)
		}
		if _, err := m.ForkSession(p.ctx(), id, qwen.SessionOptions{}); !errors.Is(err, qwen.ErrSessionNotFound) {
			t.Errorf("fork %q: %v", id, err)
		}
	}
}

func TestAnIDThatIsAlreadyOpenIsAnErrorAndLeavesTheOpenSessionAsItIs(t *testing.T) {
	p := newPlace(t, say("One."), say("Two."))
	m := p.manager(p.options())
	s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{ID: "taken"})
	must(t, err)
	defer s.Close()
	_, err = s.Run(p.ctx(), "First.")
	must(t, err)
	_, created := m.CreateSession(p.ctx(), qwen.SessionOptions{ID: "taken"})
	_, resumed := m.ResumeSession(p.ctx(), "taken", qwen.SessionOptions{})
	for _, err := range []error{created, resumed} {
		if err == nil || !strings.Contains(err.Error(), `"taken" is already open`) {
			t.Errorf("%v", err)
		}
	}
	r, err := s.Run(p.ctx(), "Second.")
	must(t, err)
	if r.Text != "Two." {
		t.Errorf("%q", r.Text)
	}
}

func TestAForkHasTheHistoryItsOwnIDAndLeavesTheOriginalAsItIs(t *testing.T) {
	p := newPlace(t, say("Hello Ada."), say("Second."), say("In the fork."), say("In the early fork."), say("In the original."))
	s := p.session(p.options())
	_, err := s.Run(p.ctx(), "My name is Ada.", qwen.WithPromptID("first"))
	must(t, err)
	_, err = s.Run(p.ctx(), "A second prompt.", qwen.WithPromptID("second"))
	must(t, err)
	fork, err := s.Fork(p.ctx(), qwen.SessionOptions{})
	must(t, err)
	if fork.ID() == s.ID() {
		t.Error("the fork has the id of the original")
	}
	_, err = fork.Run(p.ctx(), "Only in the fork.")
	must(t, err)
	if history := strings.Join(p.texts("user", "assistant"), "\n"); !strings.Contains(history, "Hello Ada.") || !strings.Contains(history, "A second prompt.") {
		t.Errorf("%q", history)
	}
	early, err := s.Fork(p.ctx(), qwen.SessionOptions{At: "first"})
	must(t, err)
	_, err = early.Run(p.ctx(), "Only in the early fork.")
	must(t, err)
	if history := strings.Join(p.texts("user", "assistant"), "\n"); strings.Contains(history, "Only in the fork.") || strings.Contains(history, "Second.") {
		t.Errorf("%q", history)
	}
	_, err = s.Run(p.ctx(), "Back in the original.")
	must(t, err)
	if history := strings.Join(p.texts("user", "assistant"), "\n"); strings.Contains(history, "Only in") || !strings.Contains(history, "Second.") {
		t.Errorf("%q", history)
	}
}

func TestRewindPutsFilesBackToWhereTheyWereBeforeAPrompt(t *testing.T) {
	p := newPlace(t, say(call("write_file", step{"file_path": "notes.txt", "content": "changed"})), say("done"))
	options := p.options()
	options.PermissionMode = qwen.ModeAutoEdit
	s := p.session(options)
	result, err := s.Run(p.ctx(), "Write notes.txt.")
	must(t, err)
	if !p.exists("notes.txt") {
		t.Fatal("the file was not written")
	}
	would, err := s.Rewind(p.ctx(), result.PromptID, true)
	must(t, err)
	if len(would.Files) != 1 || !p.exists("notes.txt") {
		t.Errorf("%+v", would)
	}
	done, err := s.Rewind(p.ctx(), result.PromptID, false)
	must(t, err)
	if len(done.Files) != 1 || p.exists("notes.txt") {
		t.Errorf("%+v", done)
	}
}

func TestAProfileTakesThePlaceOfSettingsFilesAndLeavesNothingBehind(t *testing.T) {
	p := newPlace(t, say("profiled"), say("plain"))
	t.Setenv("TMPDIR", t.TempDir())
	must(t, os.MkdirAll(filepath.Join(p.home, ".qwen"), 0o700))
	must(t, os.WriteFile(filepath.Join(p.home, ".qwen", "settings.json"), []byte(`{"model":{"name":"from-the-file"}}`), 0o600))
	options := p.options()
	options.Settings.Profile = &qwen.Profile{Overrides: map[string]any{"model.name": "from-the-profile"}}
	options.Env = map[string]string{"HOME": p.env["HOME"], "QWEN_HOME": p.env["QWEN_HOME"], "OPENAI_BASE_URL": p.env["OPENAI_BASE_URL"], "OPENAI_API_KEY": "sk-test"}
	m := p.manager(options)
	s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{})
	must(t, err)
	_, err = s.Run(p.ctx(), "Hello.")
	must(t, err)
	plain, err := m.CreateSession(p.ctx(), qwen.SessionOptions{Model: "from-the-option", Settings: qwen.Settings{Values: map[string]any{"model": map[string]any{"maxRetries": 0}}}})
	must(t, err)
	_, err = plain.Run(p.ctx(), "Hello.")
	must(t, err)
	requests := p.requests()
	if requests[0].Model != "from-the-profile" || requests[1].Model != "from-the-option" {
		t.Errorf("%s, then %s", requests[0].Model, requests[1].Model)
	}
	must(t, m.Close())
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	must(t, err)
	if len(left) != 0 {
		t.Errorf("%v", left)
	}
}

// memoryStore keeps sessions in memory.
type memoryStore struct {
	mu       sync.Mutex
	sessions map[string][]byte
	err      error
}

func (m *memoryStore) Load(_ context.Context, id string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.sessions[id]
	if !ok {
		return nil, fmt.Errorf("session %s: %w", id, qwen.ErrSessionNotFound)
	}
	return text, m.err
}

func (m *memoryStore) Append(_ context.Context, id string, lines []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	m.sessions[id] = append(m.sessions[id], lines...)
	return nil
}

func (m *memoryStore) text(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.sessions[id])
}

func TestAStoreOfTheHostGetsEveryTurnAndBringsASessionBack(t *testing.T) {
	p := newPlace(t, say("Hello Ada."), say("Your name is Ada."), say("third"))
	store := &memoryStore{sessions: map[string][]byte{}}
	options := p.options()
	options.Store = store
	s := p.session(options)
	for message, err := range s.Stream(p.ctx(), "My name is Ada.") {
		must(t, err)
		if _, ok := message.(*qwen.Result); ok && !strings.Contains(store.text(s.ID()), "Hello Ada.") {
			t.Error("the result was delivered before the store had the turn")
		}
	}
	must(t, s.Close())
	// Another machine: nothing is on disk.
	must(t, os.RemoveAll(filepath.Join(p.home, ".qwen", "sessions")))
	resumed, err := p.manager(options).ResumeSession(p.ctx(), s.ID(), qwen.SessionOptions{})
	must(t, err)
	_, err = resumed.Run(p.ctx(), "What is my name?")
	must(t, err)
	if history := strings.Join(p.texts("user", "assistant"), "\n"); !strings.Contains(history, "Hello Ada.") {
		t.Errorf("%q", history)
	}
	if !strings.Contains(store.text(s.ID()), "Your name is Ada.") {
		t.Error("the store lacks the second turn")
	}
	store.mu.Lock()
	store.err = errors.New("disk full")
	store.mu.Unlock()
	result, err := resumed.Run(p.ctx(), "Third.")
	if !errors.Is(err, qwen.ErrStore) || !strings.Contains(err.Error(), "disk full") || result == nil || result.Text != "third" {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestAPoolOf4WorkersServes20Sessions(t *testing.T) {
	p := newLoopingPlace(t, say("served"))
	options := p.options()
	options.Pool = qwen.Pool{MaxWorkers: 4}
	m := p.manager(options)
	most := runConcurrently(t, p, m, 20)
	if most > 4 {
		t.Errorf("%d workers at once", most)
	}
}

func Test100SessionsRunConcurrently(t *testing.T) {
	p := newLoopingPlace(t, say("served"))
	options := p.options()
	options.Pool = qwen.Pool{MaxWorkers: 16, MaxQueue: 200, QueueTimeout: patience}
	runConcurrently(t, p, p.manager(options), 100)
}

// runConcurrently runs two turns in each of many sessions at once, and returns the most workers that it saw.
func runConcurrently(t *testing.T, p *place, m *qwen.Manager, count int) int {
	t.Helper()
	var group sync.WaitGroup
	var mu sync.Mutex
	most := 0
	for i := range count {
		group.Go(func() {
			s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{ID: fmt.Sprintf("session-%d", i)})
			if err != nil {
				t.Error(err)
				return
			}
			for range 2 {
				result, err := s.Run(p.ctx(), "Serve.")
				if err != nil || result.Text != "served" || result.SessionID != s.ID() {
					t.Errorf("%+v, %v", result, err)
				}
				mu.Lock()
				most = max(most, len(children(m.PID())))
				mu.Unlock()
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	return most
}

func TestAttachDeliversNumberedMessagesAgainAndFollows(t *testing.T) {
	p := newPlace(t, say("one ", "two ", "three"), say("four"), say("five"))
	options := p.options()
	options.Worker.Numbered = true
	m := p.manager(options)
	s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{ID: "numbered"})
	must(t, err)
	first := collect(t, s.Stream(p.ctx(), "Count."))
	for _, message := range first {
		if message.Info().Seq == 0 {
			t.Fatalf("%T has no number", message)
		}
	}
	// The same messages again, then those of the next turn.
	var again []qwen.Message
	for message, err := range s.Attach(p.ctx(), 0) {
		must(t, err)
		again = append(again, message)
		if result, ok := message.(*qwen.Result); ok && result.Text == "one two three" {
			go s.Run(p.ctx(), "Go on.")
		} else if ok {
			break
		}
	}
	for i, message := range first {
		if fmt.Sprintf("%T %d", message, message.Info().Seq) != fmt.Sprintf("%T %d", again[i], again[i].Info().Seq) {
			t.Fatalf("message %d is %T %d", i, again[i], again[i].Info().Seq)
		}
	}
	if last := again[len(again)-1].(*qwen.Result); last.Text != "four" {
		t.Errorf("%+v", last)
	}
	seen := again[len(again)-1].Info().Seq
	must(t, m.Close())
	// A host that comes back.
	resumed, err := p.manager(options).ResumeSession(p.ctx(), "numbered", qwen.SessionOptions{})
	must(t, err)
	for message, err := range resumed.Attach(p.ctx(), seen-1) {
		must(t, err)
		if result, ok := message.(*qwen.Result); !ok || result.Seq != seen || result.Status != qwen.StatusDone {
			t.Errorf("%T %d", message, message.Info().Seq)
		}
		break
	}
	for _, err := range resumed.Attach(p.ctx(), seen+1000) {
		var refused *qwen.RequestError
		if !errors.As(err, &refused) || refused.Code != "after_in_future" {
			t.Errorf("%v", err)
		}
	}
}
