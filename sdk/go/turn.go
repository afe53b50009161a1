package qwen

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/qwen-agent/qwen/sdk/go/internal/hub"
	"github.com/qwen-agent/qwen/sdk/go/wire"
)

// TurnOption changes one turn.
type TurnOption func(*turnOptions)

type turnOptions struct {
	promptID string
	parts    []wire.RequestPart
	model    string
	request  wire.RequestOptions
}

// WithModel uses another model for this turn.
func WithModel(model string) TurnOption { return func(o *turnOptions) { o.model = model } }

// WithTools are the only tools that this turn may use.
func WithTools(names ...string) TurnOption {
	return func(o *turnOptions) { o.request.ToolOverrides = names }
}

// WithEffort is how hard the model thinks in this turn: `low`, `medium`, `high`.
func WithEffort(effort string) TurnOption { return func(o *turnOptions) { o.request.Effort = effort } }

// WithTemperature sets the model's temperature for this turn.
func WithTemperature(value float64) TurnOption {
	return func(o *turnOptions) { o.request.Temperature = &value }
}

// WithMaxTokens bounds the tokens of each answer of the model in this turn.
func WithMaxTokens(count int64) TurnOption {
	return func(o *turnOptions) { o.request.MaxTokens = &count }
}

// WithPromptID names the prompt; by default its id is generated. An id may be used once in a session.
func WithPromptID(id string) TurnOption { return func(o *turnOptions) { o.promptID = id } }

// WithImage adds an image to the prompt.
func WithImage(data []byte, mimeType string) TurnOption {
	return func(o *turnOptions) {
		image := &wire.InlinePart{Data: base64.StdEncoding.EncodeToString(data), MimeType: mimeType}
		o.parts = append(o.parts, wire.RequestPart{Type: "inline_data", InlineData: image})
	}
}

// WithFile adds a file of this machine to the prompt, which the worker reads.
func WithFile(path string) TurnOption {
	return func(o *turnOptions) {
		o.parts = append(o.parts, wire.RequestPart{Type: "file_data", FileData: &wire.FilePart{FileURI: path}})
	}
}

// WithSchema asks for a result that fits a JSON Schema: [Result].Output. [RunAs] derives the schema from a type.
func WithSchema(schema json.RawMessage) TurnOption {
	return func(o *turnOptions) {
		var fields map[string]json.RawMessage
		// A schema that is not an object is refused by the worker.
		_ = json.Unmarshal(schema, &fields)
		o.request.ResponseFormat = &wire.ResponseFormat{Type: "json_schema", JSONSchema: &wire.NamedSchema{Name: "output", Schema: fields}}
	}
}

// turn is a prompt without a result.
type turn struct {
	session  *Session
	promptID string
	queue    *messageQueue
	// ctx is the parent of the callbacks of the turn.
	ctx    context.Context
	cancel context.CancelFunc
	end    func(*Result, error)
	// joined is closed when the prompt has joined a running turn; nil for a prompt that does not steer.
	joined               chan struct{}
	interrupted, settled sync.Once
	// unwatch stops watching the caller's context.
	unwatch func() bool

	// What follows belongs to the reader of the hub's output.
	reader    turnReader
	isStarted bool
}

// start sends a prompt.
func (s *Session) start(ctx context.Context, prompt string, options []TurnOption, steers bool) (*turn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	chosen := turnOptions{}
	for _, option := range options {
		option(&chosen)
	}
	if chosen.promptID == "" {
		chosen.promptID = s.ID() + "########" + newID()
	}
	t := &turn{session: s, promptID: chosen.promptID}
	t.ctx, t.cancel = context.WithCancel(ctx)
	t.queue = newMessageQueue(s.setFull)
	t.unwatch = func() bool { return true }
	line, err := chosen.line(s.ID(), prompt)
	if err != nil {
		t.cancel()
		return nil, err
	}
	if steers {
		t.joined = make(chan struct{})
		line.Delivery = "steer"
	}
	trace, end := s.manager.options.Telemetry.StartTurn(ctx, TurnInfo{line.SessionID, t.promptID})
	t.end = end
	line.Traceparent, line.Tracestate = trace.Traceparent, trace.Tracestate
	s.mu.Lock()
	err = s.err
	if s.isClosing && err == nil {
		err = ErrClosed
	}
	if err == nil {
		s.turns = append(s.turns, t)
		// A caller that is busy in its loop does not delay the end of the turn.
		t.unwatch = context.AfterFunc(ctx, t.interrupt)
	}
	s.mu.Unlock()
	if err == nil {
		err = publicError(s.manager.conn.Send(ctx, line))
	}
	switch {
	case err == nil && ctx.Err() == nil:
		s.logger.Debug("prompt sent", "prompt_id", t.promptID)
		return t, nil
	case ctx.Err() != nil:
		// The line may be written all the same, so its turn stays open until its end. The first cancel may be before it.
		t.abandon()
		s.manager.conn.Post(s.cancelLine(t.promptID))
		return nil, context.Cause(ctx)
	}
	s.remove(t)
	t.settle(nil, err)
	return nil, err
}

func (o *turnOptions) line(sessionID, prompt string) (*wire.ChatRequest, error) {
	parts := o.parts
	switch {
	case prompt != "":
		parts = append([]wire.RequestPart{{Type: "text", Text: prompt}}, parts...)
	case len(parts) == 0:
		return nil, errors.New("qwen: the prompt is empty")
	}
	encoded, err := json.Marshal(parts)
	if err != nil {
		return nil, err
	}
	return &wire.ChatRequest{
		SessionID: sessionID, PromptID: o.promptID, Model: o.model, Options: &o.request,
		Input: wire.RequestInput{Origin: wire.OriginUser, Parts: encoded},
	}, nil
}

// Stream sends a prompt and yields the messages of its turn, the [*Result] last. The prompt is sent when the iteration
// starts; a stream can be iterated once. Leaving the loop or ending the context interrupts the turn and frees
// everything that belongs to it; the session continues. After an error, which is always the last item, the session can be
// used again unless the error is [ErrClosed] or a [*WorkerError] of the hub.
func (s *Session) Stream(ctx context.Context, prompt string, options ...TurnOption) iter.Seq2[Message, error] {
	var used atomic.Bool
	return func(yield func(Message, error) bool) {
		if used.Swap(true) {
			yield(nil, ErrStreamUsed)
			return
		}
		t, err := s.start(ctx, prompt, options, false)
		if err != nil {
			yield(nil, err)
			return
		}
		t.deliver(ctx, yield)
	}
}

// StreamAll sends prompts as they come and yields the messages of all their turns, each of which ends with its
// [*Result]. Prompts are queued while earlier ones run. It ends once the channel is closed and every turn has ended.
func (s *Session) StreamAll(ctx context.Context, prompts <-chan string, options ...TurnOption) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		var open []*turn
		defer func() {
			for _, t := range open {
				t.abandon()
			}
		}()
		for prompts != nil || len(open) > 0 {
			var wake <-chan struct{}
			if len(open) > 0 {
				wake = open[0].queue.wake
			}
			select {
			case prompt, ok := <-prompts:
				if !ok {
					prompts = nil
					continue
				}
				t, err := s.start(ctx, prompt, options, false)
				if err != nil {
					yield(nil, err)
					return
				}
				open = append(open, t)
			case <-wake:
				isEnded, goesOn := open[0].deliverReady(ctx, yield)
				if !goesOn {
					return
				}
				if isEnded {
					open = open[1:]
				}
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
		}
	}
}

// deliver yields the messages of a turn to its end.
func (t *turn) deliver(ctx context.Context, yield func(Message, error) bool) {
	defer t.abandon()
	var batch []Message
	var err error
	for {
		batch, err = t.queue.take(ctx, batch)
		if err != nil {
			yield(nil, err)
			return
		}
		if len(batch) == 0 {
			return
		}
		if !t.yieldAll(ctx, batch, yield) {
			return
		}
	}
}

// deliverReady yields the messages that are there. isEnded is true after the last message of the turn, goesOn false once
// the iteration is over.
func (t *turn) deliverReady(ctx context.Context, yield func(Message, error) bool) (isEnded, goesOn bool) {
	ready, cancel := context.WithCancelCause(ctx)
	cancel(errNothingReady)
	var batch []Message
	var err error
	for {
		batch, err = t.queue.take(ready, batch)
		switch {
		case err == errNothingReady:
			return false, true
		case err != nil:
			yield(nil, err)
			return false, false
		case len(batch) == 0:
			return true, true
		case !t.yieldAll(ctx, batch, yield):
			return false, false
		}
	}
}

func (t *turn) yieldAll(ctx context.Context, batch []Message, yield func(Message, error) bool) bool {
	for _, message := range batch {
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
			return false
		}
		result, isResult := message.(*Result)
		var err error
		if isResult {
			err = t.session.afterResult(ctx, result)
		}
		if !yield(message, nil) {
			return false
		}
		if err != nil {
			yield(nil, err)
			return false
		}
	}
	return true
}

// afterResult stores what the turn added. It returns an error if that failed, or if the turn's worker died.
func (s *Session) afterResult(ctx context.Context, result *Result) error {
	if err := s.mirror.flush(ctx); err != nil {
		return err
	}
	if result.Error == nil || result.Error.Code != "worker_lost" {
		return nil
	}
	lost := workerError(result.Raw)
	lost.Message, lost.LastResult = result.Error.Message, result.previous
	return lost
}

// accept reads a line of the turn. It is called by the reader of the hub's output.
func (t *turn) accept(meta Meta, envelope *hub.Envelope, line []byte) {
	for _, message := range t.reader.read(meta, envelope, line) {
		switch message := message.(type) {
		case *Result:
			t.finish(message)
			return
		case *Notice:
			if refusal := t.refusal(message, envelope); refusal != nil {
				t.session.remove(t)
				t.settle(nil, refusal)
				return
			}
		case *SessionEvent:
			if message.Event == "Steered" && t.joined != nil && envelope.PromptID == t.promptID {
				t.session.remove(t)
				close(t.joined)
				t.settle(nil, nil)
				return
			}
			t.isStarted = true
		default:
			t.isStarted = true
		}
		t.queue.push(message)
	}
}

// refusal returns the error of a prompt that was refused before its turn began; nil for any other notice. Errors of the
// model in a turn without another line are not refusals.
func (t *turn) refusal(notice *Notice, envelope *hub.Envelope) *TurnError {
	if t.isStarted || slices.Contains([]string{"api_error", "connection_error", "timeout_error"}, notice.Type) {
		return nil
	}
	var read completion
	if json.Unmarshal(notice.Raw, &read) != nil || read.Metadata == nil || read.Metadata.Error == nil {
		return nil
	}
	// The hub's refusal of a line may name only its session.
	if envelope.PromptID != t.promptID && read.Metadata.Error.Param != "session_id" {
		return nil
	}
	return turnError("", read.Metadata.Error, notice.Raw)
}

// finish ends the turn with its result.
func (t *turn) finish(result *Result) {
	s := t.session
	s.remove(t)
	s.mu.Lock()
	result.previous = s.last
	if result.previous != nil {
		// Only the last one is kept.
		result.previous.previous = nil
	}
	s.last = result
	s.mu.Unlock()
	t.queue.push(result)
	t.settle(result, nil)
	s.logger.Debug("turn ended", "prompt_id", t.promptID, "status", string(result.Status), "duration", result.Duration, "tokens", result.Usage.TotalTokens)
}

// settle ends the queue of a turn that is no longer open, and its span.
func (t *turn) settle(result *Result, err error) {
	t.settled.Do(func() {
		t.queue.end(err)
		t.unwatch()
		t.cancel()
		t.end(result, err)
	})
}

// interrupt asks for the end of the turn if it is open.
func (t *turn) interrupt() {
	t.interrupted.Do(func() {
		s := t.session
		s.mu.Lock()
		isOpen := slices.Contains(s.turns, t) && s.err == nil
		s.mu.Unlock()
		t.cancel()
		if isOpen {
			s.manager.conn.Post(s.cancelLine(t.promptID))
		}
	})
}

// abandon interrupts the turn if it has not ended. What still comes of it is dropped.
func (t *turn) abandon() {
	t.interrupt()
	t.queue.drop()
}

// remove takes a turn out of the open ones.
func (s *Session) remove(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = slices.DeleteFunc(slices.Clone(s.turns), func(each *turn) bool { return each == t })
}
