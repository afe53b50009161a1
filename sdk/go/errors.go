package qwen

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qwen-agent/qwen/sdk/go/internal/hub"
)

// Errors for use with [errors.Is].
var (
	// ErrBinaryNotFound means that there is no qwen program. The error's text lists the places that were searched.
	ErrBinaryNotFound = errors.New("qwen: there is no qwen program")
	// ErrClosed means that the manager or the session was closed.
	ErrClosed = errors.New("qwen: closed")
	// ErrProtocol means that the program is not a qwen hub or uses another version of the protocol.
	ErrProtocol = errors.New("qwen: protocol")
	// ErrSessionNotFound means that there is no session with the given id.
	ErrSessionNotFound = errors.New("qwen: there is no such session")
	// ErrStructuredOutput means that a turn has no structured output, or one that does not fit its type.
	ErrStructuredOutput = errors.New("qwen: there is no structured output")
	// ErrOverloaded means that the hub refused a prompt for now. [TurnError] has the time to wait.
	ErrOverloaded = errors.New("qwen: overloaded")
	// ErrInterrupted means that a turn was cancelled.
	ErrInterrupted = errors.New("qwen: the turn was interrupted")
	// ErrStreamUsed means that a stream was iterated a second time.
	ErrStreamUsed = errors.New("qwen: a stream can be iterated once; call Stream again for another turn")
	// ErrStore means that the host's session store failed.
	ErrStore = errors.New("qwen: the session store failed")
)

// WorkerError reports a worker or a hub that ended by itself. After the end of a worker the session continues with
// the next prompt; after the end of the hub the manager must be opened again.
type WorkerError struct {
	// Hub is true if the hub itself has ended, and with it every session.
	Hub bool
	// ExitCode is the process's exit code; -1 if a signal ended it or the code is unknown.
	ExitCode int
	// Signal is the number of the signal that ended the process; 0 if none did.
	Signal int
	// Stderr is the end of what the process wrote to standard error.
	Stderr string
	// LastResult is the session's last result before this one; nil if it has none.
	LastResult *Result
	// Message is the hub's description of the end.
	Message string
}

func (e *WorkerError) Error() string {
	process := "worker"
	if e.Hub {
		process = "hub"
	}
	how := "exit code " + strconv.Itoa(e.ExitCode)
	if e.Signal != 0 {
		how = "signal " + strconv.Itoa(e.Signal)
	} else if e.ExitCode < 0 {
		how = "cause unknown"
	}
	text := fmt.Sprintf("qwen: the %s has ended (%s)", process, how)
	if e.Message != "" {
		text += ": " + e.Message
	}
	if last := lastLine(e.Stderr); last != "" {
		text += "; its standard error ended with: " + last
	}
	return text
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// TurnError reports a turn that did not complete. Result has what there is.
type TurnError struct {
	// Status is the turn's status, such as [StatusMaxTurns]; empty for a prompt that was refused before its turn began.
	Status Status
	// Code is a stable error code, such as `overloaded`.
	Code string
	// Type is the class of the error, such as `api_error`.
	Type    string
	Message string
	// Retryable is true if the same prompt may succeed later, after RetryAfter if that is known.
	Retryable  bool
	RetryAfter time.Duration
	// Result is nil for a prompt that was refused.
	Result *Result
}

func (e *TurnError) Error() string {
	what := "the prompt was refused"
	if e.Status != "" {
		what = "the turn ended with the status " + string(e.Status)
	}
	text := "qwen: " + what
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Code != "" {
		text += " (" + e.Code + ")"
	}
	return text
}

// Codes of refusals that pass.
var overloadedCodes = []string{"overloaded", "draining", "session_quarantined", "worker_circuit_open"}

// Is makes [ErrOverloaded], [ErrInterrupted] and [ErrProtocol] match the turns that they describe.
func (e *TurnError) Is(target error) bool {
	switch target {
	case ErrOverloaded:
		return slices.Contains(overloadedCodes, e.Code)
	case ErrInterrupted:
		return e.Status == StatusCancelled
	case ErrProtocol:
		return e.Code == "unsupported_protocol"
	}
	return false
}

// RequestError is a request that the hub or a worker refused, such as an unknown model for [Session.SetModel].
type RequestError struct {
	// Request is the subtype of the control request.
	Request   string
	Code      string
	Message   string
	Retryable bool
}

func (e *RequestError) Error() string {
	text := "qwen: " + e.Request + " was refused: " + e.Message
	if e.Code != "" {
		text += " (" + e.Code + ")"
	}
	return text
}

// TimeoutError names the time-out that passed.
type TimeoutError struct {
	// Name is the field of [Timeouts].
	Name  string
	Limit time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("qwen: no answer within %v (time-out %s)", e.Limit, e.Name)
}

// Timeout is true; it marks the error as one of time, as in package net.
func (e *TimeoutError) Timeout() bool { return true }

// taggedError is an error of a known kind with an explanation.
type taggedError struct {
	kind  error
	text  string
	cause error
}

func (e *taggedError) Error() string { return e.kind.Error() + ": " + e.text }
func (e *taggedError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// workerError reads how a worker ended from the terminal record of its turn.
func workerError(line []byte) *WorkerError {
	var record struct {
		Metadata struct {
			Error struct {
				Worker struct {
					ExitCode *int   `json:"exit_code"`
					Signal   *int   `json:"signal"`
					Stderr   string `json:"stderr"`
				} `json:"worker"`
			} `json:"error"`
		} `json:"metadata"`
	}
	// Fields of other types count as absent.
	_ = json.Unmarshal(line, &record)
	told := record.Metadata.Error.Worker
	lost := &WorkerError{ExitCode: -1, Stderr: told.Stderr}
	if told.ExitCode != nil {
		lost.ExitCode = *told.ExitCode
	}
	if told.Signal != nil {
		lost.Signal = *told.Signal
	}
	return lost
}

// publicError translates an error of the connection.
func publicError(err error) error {
	var start *hub.StartError
	var lost *hub.LostError
	var refused *hub.RequestError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, hub.ErrClosed):
		return ErrClosed
	case errors.As(err, &start):
		return &taggedError{ErrProtocol, start.Message, start.Cause}
	case errors.As(err, &lost):
		return &WorkerError{Hub: true, ExitCode: lost.Exit.Code, Signal: lost.Exit.Signal, Stderr: lost.Exit.Stderr, Message: lost.Error()}
	case errors.As(err, &refused):
		if refused.Code == "unknown_session" {
			return &taggedError{ErrSessionNotFound, refused.Message, nil}
		}
		return &RequestError{refused.Subtype, refused.Code, refused.Message, refused.Retryable}
	}
	return err
}
