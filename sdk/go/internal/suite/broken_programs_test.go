package suite

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

// brokenProgram is a program that is not a hub. sdk/broken-programs.json has all of them for every language.
type brokenProgram struct {
	Kind   string
	Script *string
	// Cause is a pattern that the error must match.
	Cause string
}

func TestABrokenProgramIsAnErrorThatNamesItsCause(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "broken-programs.json"))
	must(t, err)
	var programs []brokenProgram
	must(t, json.Unmarshal(text, &programs))
	if len(programs) < 20 {
		t.Fatalf("%d kinds", len(programs))
	}
	for _, program := range programs {
		t.Run(program.Kind, func(t *testing.T) {
			checkLeaks(t)
			folder := t.TempDir()
			path, pids := filepath.Join(folder, "broken"), filepath.Join(folder, "pid")
			content := "\x7fELF nonsense"
			if program.Script != nil {
				content = fmt.Sprintf("#!/bin/sh\necho $$ > %s\n%s\n", pids, *program.Script)
			}
			must(t, os.WriteFile(path, []byte(content), 0o755))
			options := qwen.Options{Binary: path}
			options.Timeouts.Start = time.Second
			options.Timeouts.Close = time.Second
			began := time.Now()
			err := startSession(t, options)
			took := time.Since(began)
			if err == nil {
				t.Fatal("a broken program was accepted")
			}
			if !regexp.MustCompile(program.Cause).MatchString(err.Error()) {
				t.Errorf("the error does not name its cause (%s): %v", program.Cause, err)
			}
			if took > 3*time.Second {
				t.Errorf("it took %s", took)
			}
			text, err := os.ReadFile(pids)
			if err != nil {
				return
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			must(t, err)
			for deadline := time.Now().Add(2 * time.Second); syscall.Kill(-pid, 0) == nil || syscall.Kill(pid, 0) == nil; {
				if time.Now().After(deadline) {
					t.Fatalf("process %d is left", pid)
				}
			}
		})
	}
}

// startSession opens a manager and a session, and returns the error of whichever failed.
func startSession(t *testing.T, options qwen.Options) error {
	m, err := qwen.Open(testContext(t), options)
	if err != nil {
		return err
	}
	defer m.Close()
	_, err = m.CreateSession(testContext(t), qwen.SessionOptions{})
	return err
}
