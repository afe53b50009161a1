package qwen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/qwen-agent/qwen/sdk/go/internal/hub"
	"github.com/qwen-agent/qwen/sdk/go/internal/schema"
)

// follower receives all messages of a session.
type follower struct {
	queue *messageQueue
	// last is the number of the last line that was read. Numbers have no gaps: a line with another number than the next one
	// will come again.
	last    uint64
	readers map[string]*turnReader
}

func (f *follower) reader(promptID string) *turnReader {
	reader := f.readers[promptID]
	if reader == nil {
		reader = &turnReader{}
		f.readers[promptID] = reader
	}
	return reader
}

func (f *follower) skip(seq uint64) bool {
	if seq != f.last+1 {
		return false
	}
	f.last = seq
	return true
}

func (f *follower) text(meta Meta, text string) {
	if f.skip(meta.Seq) {
		f.queue.push(f.reader(meta.PromptID).piece(meta, text))
	}
}

func (f *follower) line(meta Meta, envelope *hub.Envelope, line []byte) {
	if !f.skip(meta.Seq) {
		return
	}
	for _, message := range f.reader(meta.PromptID).read(meta, envelope, line) {
		if _, isResult := message.(*Result); isResult {
			delete(f.readers, meta.PromptID)
		}
		f.queue.push(message)
	}
}

// Attach yields the numbered messages of the session after the given number, those that were delivered before included,
// and then all that follow, of every turn, until the loop is left, the context ends or the session is closed. The
// session must be opened with [WorkerOptions].Numbered. A host that lost its connection resumes the session and attaches
// after the last number that it has seen.
func (s *Session) Attach(ctx context.Context, after uint64) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		f := &follower{queue: newMessageQueue(s.setFull), last: after, readers: map[string]*turnReader{}}
		s.mu.Lock()
		s.followers = append(slices.Clone(s.followers), f)
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.followers = slices.DeleteFunc(slices.Clone(s.followers), func(each *follower) bool { return each == f })
			s.mu.Unlock()
			f.queue.drop()
		}()
		if _, err := s.Request(ctx, "attach", map[string]any{"after": after}); err != nil {
			yield(nil, err)
			return
		}
		var batch []Message
		var err error
		for {
			batch, err = f.queue.take(ctx, batch)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, message := range batch {
				if !yield(message, nil) {
					return
				}
			}
		}
	}
}

// SteerOutcome is what became of a prompt that steers.
type SteerOutcome struct {
	// Joined is true if the prompt joined the running turn.
	Joined bool
	// Result is the result of the prompt's own turn; nil if it joined another.
	Result *Result
}

// Steer adds a prompt to the running turn before its next model call and returns once it has joined. Without a running
// turn, or if that ends before, the prompt is a separate turn, and Steer returns its result. When the context ends, the
// prompt is withdrawn.
func (s *Session) Steer(ctx context.Context, prompt string, options ...TurnOption) (SteerOutcome, error) {
	t, err := s.start(ctx, prompt, options, true)
	if err != nil {
		return SteerOutcome{}, err
	}
	defer t.abandon()
	defer s.awaitAnswer()()
	var outcome SteerOutcome
	t.deliver(ctx, func(message Message, failed error) bool {
		if failed != nil {
			err = failed
			return false
		}
		if result, ok := message.(*Result); ok {
			outcome.Result = result
		}
		return true
	})
	select {
	case <-t.joined:
		return SteerOutcome{Joined: true}, nil
	default:
	}
	if err == nil && outcome.Result != nil {
		err = outcome.Result.Err()
	}
	return outcome, err
}

// Runner is a [*Session] or a [*Manager].
type Runner interface {
	Run(ctx context.Context, prompt string, options ...TurnOption) (*Result, error)
}

// RunAs runs a prompt whose answer is a value of type T. The schema that the model must keep to derives from T, as for
// [Tool]. The value is checked: an answer that does not fit, or none, is [ErrStructuredOutput] and never a partial value.
func RunAs[T any](ctx context.Context, runner Runner, prompt string, options ...TurnOption) (T, *Result, error) {
	var zero T
	derived, text, err := schema.For(reflect.TypeFor[T]())
	if err != nil {
		return zero, nil, fmt.Errorf("qwen: %w", err)
	}
	result, err := runner.Run(ctx, prompt, append(slices.Clone(options), WithSchema(text))...)
	if err != nil {
		var failed *TurnError
		if errors.As(err, &failed) && failed.Status == StatusError {
			return zero, result, &taggedError{ErrStructuredOutput, failed.Error(), err}
		}
		return zero, result, err
	}
	if result.Output == nil {
		return zero, result, &taggedError{ErrStructuredOutput, "the turn ended without one", nil}
	}
	var output T
	if err := decodeChecked(derived, result.Output, &output); err != nil {
		return zero, result, &taggedError{ErrStructuredOutput, err.Error(), err}
	}
	return output, result, nil
}

// Decode decodes the structured output of a turn that was run with [WithSchema].
func (r *Result) Decode(target any) error {
	if r.Output == nil {
		return &taggedError{ErrStructuredOutput, "the turn ended with the status " + string(r.Status) + " and without one", r.Err()}
	}
	if err := json.Unmarshal(r.Output, target); err != nil {
		return &taggedError{ErrStructuredOutput, err.Error(), err}
	}
	return nil
}
