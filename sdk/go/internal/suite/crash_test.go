package suite

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

// crash runs a turn under a policy and kills its worker once: after the tool if `afterTool`, else in the first text.
func crash(t *testing.T, policy qwen.CrashPolicy, afterTool bool) (p *place, s *qwen.Session, original string, result *qwen.Result, err error) {
	t.Helper()
	first := say("half", gate("never"))
	if afterTool {
		first = say(touch("made"))
	}
	p = newPlace(t, first, say("rest", gate("after")), say("again"))
	options := p.options()
	options.PermissionMode = qwen.ModeYolo
	options.OnCrash = policy
	m := p.manager(options)
	s, err = m.CreateSession(p.ctx(), qwen.SessionOptions{})
	must(t, err)
	original = s.ID()
	wanted, isKilled := "half", false
	if afterTool {
		wanted = "rest"
	}
	for message, failed := range s.Stream(p.ctx(), "Work.") {
		if failed != nil {
			err = failed
			continue
		}
		if text, ok := message.(*qwen.Text); ok && text.Text == wanted && !isKilled {
			isKilled = true
			for _, pid := range workers(t, m.PID()) {
				must(t, syscall.Kill(pid, syscall.SIGKILL))
			}
			p.open("after")
		}
		if last, ok := message.(*qwen.Result); ok {
			result = last
		}
	}
	if !isKilled {
		t.Fatal("the worker was not killed")
	}
	return p, s, original, result, err
}

func TestATurnWhoseWorkerDiedIsResumedAndFinishedEffectsAreNotRepeated(t *testing.T) {
	p, s, original, result, err := crash(t, qwen.CrashResume, true)
	if err != nil || !result.Done() || result.Text != "again" || s.ID() != original {
		t.Fatalf("%+v, %v", result, err)
	}
	touched := 0
	for _, call := range result.ToolCalls {
		if call.Name == "run_shell_command" {
			touched++
		}
	}
	if touched > 1 || !p.exists("made") {
		t.Errorf("the call was made %d times", touched)
	}
}

func TestATurnWhoseWorkerDiedBeforeAnyToolIsRetriedAsConfigured(t *testing.T) {
	_, s, original, result, err := crash(t, qwen.CrashRetry, false)
	if err != nil || !result.Done() || result.Text != "rest" || s.ID() != original {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestATurnWhoseWorkerDiedAfterAToolIsNotRetried(t *testing.T) {
	_, _, _, result, err := crash(t, qwen.CrashRetry, true)
	var lost *qwen.WorkerError
	if !errors.As(err, &lost) || lost.Signal != int(syscall.SIGKILL) || result.Status != qwen.StatusInterrupted {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestATurnWhoseWorkerDiedContinuesInAForkAndTheOriginalStays(t *testing.T) {
	p, s, original, result, err := crash(t, qwen.CrashFork, false)
	if err != nil || !result.Done() || result.Text != "rest" {
		t.Fatalf("%+v, %v", result, err)
	}
	if s.ID() == original || result.SessionID != s.ID() {
		t.Errorf("the session is %s, its result is of %s", s.ID(), result.SessionID)
	}
	next, err := s.Run(p.ctx(), "And now?")
	if err != nil || next.Text != "again" {
		t.Errorf("%+v, %v", next, err)
	}
	log, err := os.ReadFile(p.env["QWEN_HOME"] + "/sessions/" + original + ".jsonl")
	must(t, err)
	if strings.Contains(string(log), "And now?") {
		t.Error("the original has the fork's prompts")
	}
}
