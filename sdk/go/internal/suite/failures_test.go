package suite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

func TestAWorkerKilledInATurnIsAnErrorThatTellsHowItEnded(t *testing.T) {
	p := newPlace(t, say("fine"), say("half", gate("never")), say("Back again."))
	m := p.manager(p.options())
	s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{})
	must(t, err)
	good, err := s.Run(p.ctx(), "First.")
	must(t, err)
	var messages []qwen.Message
	var failure error
	for message, err := range s.Stream(p.ctx(), "Second.") {
		if err != nil {
			failure = err
			continue
		}
		messages = append(messages, message)
		if _, ok := message.(*qwen.Text); ok {
			for _, pid := range workers(t, m.PID()) {
				must(t, syscall.Kill(pid, syscall.SIGKILL))
			}
		}
	}
	var lost *qwen.WorkerError
	if !errors.As(failure, &lost) || lost.Hub || lost.Signal != int(syscall.SIGKILL) || lost.ExitCode != -1 {
		t.Fatalf("%v", failure)
	}
	if lost.LastResult == nil || lost.LastResult.Text != good.Text {
		t.Errorf("the last good result is %+v", lost.LastResult)
	}
	if result, ok := messages[len(messages)-1].(*qwen.Result); !ok || result.Status != qwen.StatusInterrupted || result.Text != "half" {
		t.Errorf("%+v", messages[len(messages)-1])
	}
	again, err := s.Run(p.ctx(), "Third.")
	if err != nil || again.Text != "Back again." {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestEverySessionOfAKilledHubEndsWithAnError(t *testing.T) {
	p := newLoopingPlace(t, say("half", gate("never")))
	m := p.manager(p.options())
	failures := make(chan error, 3)
	running := make(chan struct{}, 3)
	for range 3 {
		s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{})
		must(t, err)
		go func() {
			for message, err := range s.Stream(p.ctx(), "Work.") {
				if _, ok := message.(*qwen.Text); ok {
					running <- struct{}{}
				}
				if err != nil {
					failures <- err
				}
			}
		}()
	}
	for range 3 {
		<-running
	}
	must(t, syscall.Kill(m.PID(), syscall.SIGKILL))
	for range 3 {
		var lost *qwen.WorkerError
		if err := <-failures; !errors.As(err, &lost) || !lost.Hub || lost.Signal != int(syscall.SIGKILL) {
			t.Errorf("%v", err)
		}
	}
	if _, err := m.CreateSession(p.ctx(), qwen.SessionOptions{}); err == nil {
		t.Error("a session was created without a hub")
	}
	if _, err := m.Status(p.ctx()); err == nil {
		t.Error("there is a status without a hub")
	}
}

func TestAWorkerThatStopsAnsweringIsEndedAndTreatedAsCrashed(t *testing.T) {
	p := newPlace(t, say("half", gate("never")), say("Back again."))
	options := p.options()
	options.Pool = qwen.Pool{HeartbeatInterval: 200 * time.Millisecond, HeartbeatTimeout: time.Second}
	m := p.manager(options)
	s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{})
	must(t, err)
	var failure error
	for message, err := range s.Stream(p.ctx(), "Work.") {
		failure = err
		if _, ok := message.(*qwen.Text); ok {
			for _, pid := range workers(t, m.PID()) {
				must(t, syscall.Kill(pid, syscall.SIGSTOP))
			}
		}
	}
	var lost *qwen.WorkerError
	if !errors.As(failure, &lost) {
		t.Fatalf("%v", failure)
	}
	again, err := s.Run(p.ctx(), "Again.")
	if err != nil || again.Text != "Back again." {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestALineOf60MBIsRead(t *testing.T) {
	result, err := fakeSession(t, "long").Run(testContext(t), "Go.")
	must(t, err)
	if want := len("before ") + 60_000_000; len(result.Text) != want {
		t.Errorf("%d characters and not %d", len(result.Text), want)
	}
}

func TestAMalformedLineAndAnUnknownEventAreMessagesAndTheStreamContinues(t *testing.T) {
	messages := collect(t, fakeSession(t, "strange").Stream(testContext(t), "Go."))
	var text strings.Builder
	for _, piece := range only[*qwen.Text](messages) {
		text.WriteString(piece.Text)
	}
	if text.String() != "abd" {
		t.Errorf("%q", text.String())
	}
	unknown := only[*qwen.Unknown](messages)
	var malformed, hologram int
	for _, each := range unknown {
		if each.Malformed {
			malformed++
		}
		var depth struct{ Depth int }
		if each.Raw.Decode(&depth) == nil && depth.Depth == 3 {
			hologram++
		}
	}
	if malformed != 2 || hologram != 1 || len(unknown) != 4 {
		t.Errorf("%+v", unknown)
	}
	thoughts := only[*qwen.Thought](messages)
	if len(thoughts) != 1 || !strings.Contains(thoughts[0].Raw.String(), `"mood":"calm"`) {
		t.Errorf("unknown fields are lost: %+v", thoughts)
	}
}

func TestAFloodOnStandardErrorStopsNothing(t *testing.T) {
	result, err := fakeSession(t, "flood").Run(testContext(t), "Go.")
	if err != nil || result.Text != "after the flood" {
		t.Fatalf("%+v, %v", result, err)
	}
}

func TestTheEndOfStandardErrorIsInTheErrorOfAHubThatDied(t *testing.T) {
	_, err := fakeSession(t, "die").Run(testContext(t), "Go.")
	var lost *qwen.WorkerError
	if !errors.As(err, &lost) || !lost.Hub || lost.ExitCode != 3 || !strings.HasSuffix(lost.Stderr, "out of cheese\n") || len(lost.Stderr) > 64*1024 {
		t.Errorf("%v", err)
	}
	if !strings.Contains(err.Error(), "out of cheese") {
		t.Error(err)
	}
}

func TestAMissingBinaryIsAnErrorThatTellsWhereItWasSearched(t *testing.T) {
	checkLeaks(t)
	t.Setenv("QWEN_BIN", "")
	t.Setenv("PATH", t.TempDir())
	_, err := qwen.Open(testContext(t), qwen.Options{})
	if !errors.Is(err, qwen.ErrBinaryNotFound) {
		t.Fatal(err)
	}
	for _, wanted := range []string{"Options.Binary", "QWEN_BIN", "PATH (" + os.Getenv("PATH"), "install qwen"} {
		if !strings.Contains(err.Error(), wanted) {
			t.Errorf("%q lacks %q", err, wanted)
		}
	}
	_, err = qwen.Open(testContext(t), qwen.Options{Binary: "/no/such/qwen"})
	if !errors.Is(err, qwen.ErrBinaryNotFound) || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/no/such/qwen") {
		t.Error(err)
	}
}

func TestTheBinaryIsLookedUpInTheOptionThenQwenBinThenEmbeddedThenPath(t *testing.T) {
	folder := t.TempDir()
	program := func(name string) string {
		path := filepath.Join(folder, name, "qwen")
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
		return path
	}
	option, variable, onPath := program("option"), program("variable"), program("path")
	t.Setenv("PATH", filepath.Dir(onPath))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(folder, "cache"))
	find := func(given string) string {
		t.Helper()
		found, err := qwen.FindBinary(given)
		must(t, err)
		return found
	}
	t.Setenv("QWEN_BIN", variable)
	if found := find(option); found != option {
		t.Error(found)
	}
	if found := find(""); found != variable {
		t.Error(found)
	}
	t.Setenv("QWEN_BIN", "")
	if found := find(""); found != onPath {
		t.Error(found)
	}
	qwen.RegisterBinary(compress(t, []byte("#!/bin/sh\necho embedded\n")))
	t.Cleanup(func() { qwen.RegisterBinary(nil) })
	found := find("")
	if output, err := exec.Command(found).Output(); err != nil || string(output) != "embedded\n" {
		t.Errorf("%s: %q, %v", found, output, err)
	}
	if again := find(""); again != found {
		t.Errorf("%s, then %s", found, again)
	}
}

func TestAProgramThatIsNotAHubIsAnErrorWithinTheStartTimeout(t *testing.T) {
	checkLeaks(t)
	for _, program := range []string{"/bin/true", "/bin/false", "/bin/echo"} {
		_, err := qwen.Open(testContext(t), qwen.Options{Binary: program})
		if !errors.Is(err, qwen.ErrProtocol) || !strings.Contains(err.Error(), program) {
			t.Errorf("%s: %v", program, err)
		}
	}
	options := fakeOptions(t, "silent")
	options.Timeouts.Start = 300 * time.Millisecond
	if _, err := qwen.Open(testContext(t), options); !errors.Is(err, qwen.ErrProtocol) || !strings.Contains(err.Error(), "300ms") {
		t.Error(err)
	}
	if _, err := qwen.Open(testContext(t), fakeOptions(t, "fatal")); !errors.Is(err, qwen.ErrProtocol) || !strings.Contains(err.Error(), "the settings are broken") {
		t.Error(err)
	}
}

func TestAnotherProtocolVersionIsAnErrorThatNamesBoth(t *testing.T) {
	_, err := qwen.Open(testContext(t), fakeOptions(t, "version"))
	if !errors.Is(err, qwen.ErrProtocol) || !strings.Contains(err.Error(), "7.2") || !strings.Contains(err.Error(), "1.0") {
		t.Error(err)
	}
}

func TestPromptsAndInstructionsOfAnySizeGoThroughStandardInput(t *testing.T) {
	p := newPlace(t, say("read", gate("held"), " all"))
	options := p.options()
	options.SystemPrompt.Replace = "secret-instruction " + strings.Repeat("i", 200_000)
	m := p.manager(options)
	s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{})
	must(t, err)
	prompt := "secret-prompt " + strings.Repeat("p", 300_000)
	for message, err := range s.Stream(p.ctx(), prompt) {
		must(t, err)
		if _, ok := message.(*qwen.Text); !ok {
			continue
		}
		for _, pid := range append(workers(t, m.PID()), m.PID()) {
			arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			must(t, err)
			if strings.Contains(string(arguments), "secret-") {
				t.Errorf("%q", arguments)
			}
		}
		p.open("held")
	}
	if users := p.texts("user"); !strings.Contains(users[len(users)-1], prompt) {
		t.Error("the prompt was cut")
	}
	if system := p.texts("system"); !strings.Contains(strings.Join(system, ""), options.SystemPrompt.Replace) {
		t.Error("the instructions were cut")
	}
}

// startHost runs a host with a turn that does not end, and returns it with the process ids of its hub and workers.
func startHost(t *testing.T, p *place, ending string) (*exec.Cmd, []int) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	command := exec.Command(self)
	command.Env = append(os.Environ(), roleVariable+"=host:"+ending, "SUITE_WORK="+p.work)
	for name, value := range p.env {
		command.Env = append(command.Env, name+"="+value)
	}
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	must(t, err)
	hub, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(line)
	}
	return command, append(children(hub), hub)
}

func TestNoChildOutlivesAHostThatIsKilledInterruptedOrLeaves(t *testing.T) {
	for name, end := range map[string]func(*os.Process) error{
		"kill":   func(process *os.Process) error { return process.Kill() },
		"ctrl-c": func(process *os.Process) error { return process.Signal(os.Interrupt) },
		"term":   func(process *os.Process) error { return process.Signal(syscall.SIGTERM) },
		"exit":   func(*os.Process) error { return nil },
		"return": func(*os.Process) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, say("half", gate("never")))
			command, processes := startHost(t, p, name)
			must(t, end(command.Process))
			// The exit code is that of the signal.
			_ = command.Wait()
			gone := time.Now()
			until(t, "no process is left", func() bool {
				for _, pid := range processes {
					if isRunning(pid) {
						return false
					}
				}
				return true
			})
			if took := time.Since(gone); took > 2*time.Second {
				t.Errorf("the last child ended after %v", took)
			}
		})
	}
}

// eachPoint runs a turn with text, a tool and a question, once for each of its messages, and calls `act` at that message.
// If the session is not closed, its next turn must work.
func eachPoint(t *testing.T, act func(t *testing.T, m *qwen.Manager, s *qwen.Session, cancel context.CancelFunc) (goesOn bool)) {
	t.Helper()
	for point := 0; ; point++ {
		count := 0
		t.Run(strconv.Itoa(point), func(t *testing.T) {
			about := func(prompt string, reply map[string]any) map[string]any { reply["match"] = prompt; return reply }
			p := newPlace(t, about("Make a file.", say("Making ", "a file.", touch("a"))), about("Make a file.", say("Done.")), about("And now?", say("Next.")))
			m := p.manager(p.decideBy(func(context.Context, qwen.PermissionRequest) (qwen.Decision, error) { return qwen.Allow(), nil }))
			s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{})
			must(t, err)
			ctx, cancel := context.WithCancel(p.ctx())
			defer cancel()
			for _, err := range s.Stream(ctx, "Make a file.") {
				if err != nil {
					if !errors.Is(err, context.Canceled) && !errors.Is(err, qwen.ErrClosed) {
						t.Error(err)
					}
					break
				}
				if count++; count == point+1 && !act(t, m, s, cancel) {
					break
				}
			}
			next, err := s.Run(p.ctx(), "And now?")
			if errors.Is(err, qwen.ErrClosed) {
				return
			}
			if err != nil || next.Text != "Next." {
				t.Errorf("%+v, %v", next, err)
			}
		})
		if count <= point || t.Failed() {
			return
		}
	}
}

func TestAnIteratorAbandonedAtEveryMessageFreesEverythingAndTheSessionContinues(t *testing.T) {
	eachPoint(t, func(*testing.T, *qwen.Manager, *qwen.Session, context.CancelFunc) bool { return false })
}

func TestCancellationAtEveryMessageEndsTheTurnAndTheSessionContinues(t *testing.T) {
	eachPoint(t, func(_ *testing.T, _ *qwen.Manager, _ *qwen.Session, cancel context.CancelFunc) bool {
		cancel()
		return true
	})
}

func TestCloseAtEveryMessageReturnsWithinItsTimeout(t *testing.T) {
	eachPoint(t, func(t *testing.T, m *qwen.Manager, s *qwen.Session, _ context.CancelFunc) bool {
		started := time.Now()
		// Any goroutine may close, several at once.
		closed := make(chan error, 2)
		go func() { closed <- s.Close() }()
		go func() { closed <- s.Close() }()
		for range 2 {
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(started); took > 6*time.Second {
			t.Errorf("Close took %v", took)
		}
		if _, err := s.Run(testContext(t), "More."); !errors.Is(err, qwen.ErrClosed) {
			t.Error(err)
		}
		if err := s.SetModel(testContext(t), "x"); !errors.Is(err, qwen.ErrClosed) {
			t.Error(err)
		}
		return true
	})
}

func TestClosingTheManagerAtEveryMessageReturnsWithinItsTimeout(t *testing.T) {
	eachPoint(t, func(t *testing.T, m *qwen.Manager, _ *qwen.Session, _ context.CancelFunc) bool {
		started := time.Now()
		must(t, m.Close())
		must(t, m.Close())
		if took := time.Since(started); took > 6*time.Second {
			t.Errorf("Close took %v", took)
		}
		if _, err := m.CreateSession(testContext(t), qwen.SessionOptions{}); !errors.Is(err, qwen.ErrClosed) {
			t.Error(err)
		}
		return true
	})
}

func TestAContextThatEndedBeforeACallStartsNothing(t *testing.T) {
	p := newPlace(t, say("one"))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := qwen.Open(ended, p.options()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s := p.session(p.options())
	if _, err := s.Run(ended, "Hello."); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := s.SetModel(ended, "x"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// The context of Open and CreateSession bounds those calls only.
	short, end := context.WithCancel(p.ctx())
	m, err := qwen.Open(short, p.options())
	must(t, err)
	defer m.Close()
	other, err := m.CreateSession(short, qwen.SessionOptions{})
	must(t, err)
	end()
	if result, err := other.Run(p.ctx(), "Hello."); err != nil || result.Text != "one" {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestAStreamIsIteratedOnce(t *testing.T) {
	p := newPlace(t, say("one"))
	stream := p.session(p.options()).Stream(p.ctx(), "Hello.")
	collect(t, stream)
	for message, err := range stream {
		if message != nil || !errors.Is(err, qwen.ErrStreamUsed) {
			t.Errorf("%v, %v", message, err)
		}
	}
}

func memoryInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
