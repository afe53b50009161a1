package qwen

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/qwen-agent/qwen/sdk/go/internal/hub"
	"github.com/qwen-agent/qwen/sdk/go/wire"
)

// Session is a conversation with the agent. Its prompts are worked on one after the other. It is safe for concurrent
// use.
type Session struct {
	manager *Manager
	options SessionOptions
	logger  *slog.Logger
	mirror  *mirror
	control *controlChannel
	// ctx is the parent of callbacks outside of a turn; it ends with the session.
	ctx    context.Context
	cancel context.CancelFunc

	closing  sync.Once
	closeErr error

	mu sync.Mutex
	id string
	// turns are the open prompts in the order in which they were sent.
	turns     []*turn
	followers []*follower
	last      *Result
	lastSeq   uint64
	isClosing bool
	// isRegistered is true once the hub's lines for the id come to this session and no other.
	isRegistered bool
	// err is the reason for which the session accepts no more prompts.
	err error
	// full counts the queues that hold too much, asked the requests whose answers a paused worker could not give.
	full, asked int
	isPaused    bool
	// folder holds the session's settings file; empty if there is none.
	folder string
}

func newSession(m *Manager, options SessionOptions) *Session {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Session{
		manager: m, options: options, id: options.ID, ctx: ctx, cancel: cancel,
		logger: m.options.Logger.With("session_id", options.ID),
		mirror: newMirror(m.options.Store, options.ID, options.Env),
	}
	s.control = newControlChannel(s)
	return s
}

// open opens the session in the hub.
func (s *Session) open(ctx context.Context, forkFrom string) error {
	if err := s.mirror.restore(ctx); err != nil {
		return err
	}
	fields, folder, err := openFields(&s.options, forkFrom)
	s.folder = folder
	if err != nil {
		return err
	}
	if err := s.manager.conn.Register(s.id, receiver{s}); err != nil {
		// The id belongs to another session, which stays as it is.
		s.markClosing()
		return publicError(err)
	}
	s.mu.Lock()
	s.isRegistered = true
	s.mu.Unlock()
	// A program that greets like a hub and then answers nothing is found by the start time-out.
	limit := s.manager.options.Timeouts.Start
	opening, cancel := context.WithTimeoutCause(ctx, limit, &TimeoutError{"Start", limit})
	defer cancel()
	if _, err := s.Request(opening, "open", fields); err != nil {
		// There is no session that `close` could end.
		s.markClosing()
		return err
	}
	s.logger.Debug("session opened")
	if fields := s.control.initializeFields(&s.options); fields != nil {
		_, err = s.Request(ctx, "initialize", fields)
	}
	return err
}

// ID returns the session's id, under which it can be resumed. It changes when the session continues in a fork
// ([CrashFork]).
func (s *Session) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// LastResult returns the result of the last turn that ended; nil if none did. It survives the death of a worker.
func (s *Session) LastResult() *Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Run sends a prompt and returns the result of its turn. A turn that did not complete is an error, a [*TurnError] or a
// [*WorkerError]; the result is returned with it if there is one. When the context ends, the turn is interrupted.
func (s *Session) Run(ctx context.Context, prompt string, options ...TurnOption) (*Result, error) {
	var result *Result
	for message, err := range s.Stream(ctx, prompt, options...) {
		if err != nil {
			return result, err
		}
		if last, ok := message.(*Result); ok {
			result = last
		}
	}
	if result == nil {
		return nil, ErrClosed
	}
	return result, result.Err()
}

// Interrupt ends the running turn, whose stream ends with a result of [StatusCancelled]. The session continues. Without
// a running turn nothing happens.
func (s *Session) Interrupt(ctx context.Context) error {
	s.mu.Lock()
	var promptID string
	if len(s.turns) > 0 {
		promptID = s.turns[0].promptID
	}
	s.mu.Unlock()
	if promptID == "" {
		return nil
	}
	ctx, cancel := s.requestContext(ctx)
	defer cancel()
	defer s.awaitAnswer()()
	_, err := s.manager.conn.Exchange(ctx, "cancel", s.cancelLine(promptID))
	return publicError(err)
}

func (s *Session) cancelLine(promptID string) map[string]any {
	return map[string]any{"type": wire.CancelRequestTypeControlCancel, "session_id": s.ID(), "prompt_id": promptID, "reason": "escape"}
}

// SetModel changes the model; an empty name returns to the one that the session started with.
func (s *Session) SetModel(ctx context.Context, model string) error {
	fields := map[string]any{"model": model}
	if model == "" {
		fields["model"] = nil
	}
	_, err := s.Request(ctx, "set_model", fields)
	return err
}

// SetPermissionMode changes what the agent may do without asking.
func (s *Session) SetPermissionMode(ctx context.Context, mode PermissionMode) error {
	_, err := s.Request(ctx, "set_permission_mode", map[string]any{"mode": mode})
	return err
}

// Rewound is what [Session.Rewind] did.
type Rewound struct {
	// Files are the paths that were put back, or that would be.
	Files []string `json:"filesChanged"`
}

// Rewind puts files back to where they were before a prompt, whose id every message of its turn has. It works between
// turns. With dryRun nothing changes.
func (s *Session) Rewind(ctx context.Context, promptID string, dryRun bool) (*Rewound, error) {
	answer, err := s.Request(ctx, "rewind_files", map[string]any{"user_message_id": promptID, "dry_run": dryRun})
	if err != nil {
		return nil, err
	}
	var rewound Rewound
	if err := json.Unmarshal(answer, &rewound); err != nil {
		return nil, &taggedError{ErrProtocol, "the answer to rewind_files: " + err.Error(), err}
	}
	return &rewound, nil
}

// Fork makes a new session with the history of this one, which stays as it is. Fields of the options that are set count
// over this session's.
func (s *Session) Fork(ctx context.Context, options SessionOptions) (*Session, error) {
	own := s.options
	own.ID, own.At = "", ""
	return s.manager.ForkSession(ctx, s.ID(), options.over(own))
}

// Request sends any control request of the protocol, such as `get_context_usage`, and returns its answer.
func (s *Session) Request(ctx context.Context, subtype string, fields map[string]any) (json.RawMessage, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	ctx, cancel := s.requestContext(ctx)
	defer cancel()
	defer s.awaitAnswer()()
	answer, err := s.manager.conn.Request(ctx, s.ID(), subtype, fields)
	return answer, publicError(err)
}

func (s *Session) requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := s.manager.options.Timeouts.Request
	return context.WithTimeoutCause(ctx, limit, &TimeoutError{"Request", limit})
}

// usable returns the reason for which the session cannot be used.
func (s *Session) usable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if s.isClosing {
		return ErrClosed
	}
	return nil
}

func (s *Session) markClosing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isClosing = true
}

// Close ends the session; its log stays, and it can be resumed. A running turn is cancelled, and its stream ends. Close
// returns within [Timeouts].Close and may be called from any goroutine, several times.
func (s *Session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.manager.options.Timeouts.Close)
	defer cancel()
	return s.shutdown(ctx)
}

func (s *Session) shutdown(ctx context.Context) error {
	s.closing.Do(func() { s.closeErr = s.end(ctx) })
	return s.closeErr
}

func (s *Session) end(ctx context.Context) error {
	wasOpen := s.usable() == nil
	s.markClosing()
	conn := s.manager.conn
	if wasOpen {
		// The worker's last hooks are still served.
		if _, err := conn.Request(ctx, s.ID(), "close", nil); err != nil {
			s.logger.Debug("close", "error", err)
		}
	}
	s.mu.Lock()
	isRegistered := s.isRegistered
	s.mu.Unlock()
	if isRegistered {
		conn.Unregister(s.ID())
	}
	s.fail(ErrClosed)
	s.cancel()
	s.control.close(ctx)
	s.manager.forget(s)
	if s.folder != "" {
		os.RemoveAll(s.folder)
	}
	s.logger.Debug("session closed")
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.manager.options.Timeouts.Close)
	defer cancel()
	return s.mirror.flush(flush)
}

// fail ends all open turns with an error.
func (s *Session) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	turns, followers, last := s.turns, s.followers, s.last
	s.turns, s.followers = nil, nil
	s.mu.Unlock()
	for _, t := range turns {
		t.settle(nil, withLastResult(err, last))
	}
	for _, f := range followers {
		f.queue.end(err)
	}
}

func withLastResult(err error, last *Result) error {
	var lost *WorkerError
	if !errors.As(err, &lost) {
		return err
	}
	told := *lost
	told.LastResult = last
	return &told
}

// receiver gets the session's lines from the hub.
type receiver struct{ s *Session }

// Lost implements hub.Receiver.
func (r receiver) Lost(err error) {
	s := r.s
	s.control.cancelAll()
	s.fail(publicError(err))
}

// Text implements hub.Receiver.
func (r receiver) Text(promptID, text string, seq uint64, line []byte) {
	s := r.s
	t, followers, isReplay := s.route(promptID, seq)
	meta := Meta{SessionID: s.id, PromptID: promptID, Seq: seq, Raw: line}
	for _, f := range followers {
		f.text(meta, text)
	}
	if t != nil && !isReplay {
		t.isStarted = true
		t.queue.push(t.reader.piece(meta, text))
	}
}

// Line implements hub.Receiver.
func (r receiver) Line(envelope *hub.Envelope, line []byte) {
	s := r.s
	switch envelope.Type {
	case wire.ControlRequestTypeControlRequest:
		s.control.handle(line)
		s.number(envelope.Seq)
		return
	case wire.ControlCancelTypeControlCancelRequest:
		s.control.withdraw(envelope.RequestID)
		s.number(envelope.Seq)
		return
	case wire.ControlResponseTypeControlResponse:
		s.number(envelope.Seq)
		return
	}
	t, followers, isReplay := s.route(envelope.PromptID, envelope.Seq)
	meta := Meta{SessionID: s.id, PromptID: envelope.PromptID, Seq: envelope.Seq, Raw: line}
	for _, f := range followers {
		f.line(meta, envelope, line)
	}
	if t != nil && !isReplay {
		t.accept(meta, envelope, line)
	}
	if envelope.Type == wire.SessionEventTypeXQwenSessionEvent && !isReplay {
		s.followFork(line)
	}
}

// followFork continues under the id of a fork if the line announces one: the session's worker died, and its further
// lines carry that id. It is called by the reader of the hub's output, which alone changes the id.
func (s *Session) followFork(line []byte) {
	var notice struct {
		Value struct {
			Kind       string `json:"kind"`
			SessionID  string `json:"session_id"`
			ForkedFrom string `json:"forked_from"`
		} `json:"value"`
	}
	value := &notice.Value
	if json.Unmarshal(line, &notice) != nil || value.Kind != "worker_restarted" || value.ForkedFrom == "" || value.SessionID == "" {
		return
	}
	s.manager.conn.Rename(s.id, value.SessionID)
	s.mirror.follow(value.SessionID)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id, s.lastSeq = value.SessionID, 0
	for _, f := range s.followers {
		f.last = 0
	}
}

// number notes the number of a line that is not passed on.
func (s *Session) number(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastSeq = max(s.lastSeq, seq)
	for _, f := range s.followers {
		f.skip(seq)
	}
}

// route returns the turn that a line belongs to and the followers of the session. A line that was delivered before is
// for followers only. A line that names no prompt goes to the running turn.
func (s *Session) route(promptID string, seq uint64) (t *turn, followers []*follower, isReplay bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq != 0 {
		isReplay = seq <= s.lastSeq
		s.lastSeq = max(s.lastSeq, seq)
	}
	if promptID == "" && len(s.turns) > 0 {
		return s.turns[0], s.followers, isReplay
	}
	at := slices.IndexFunc(s.turns, func(each *turn) bool { return each.promptID == promptID })
	if at < 0 {
		return nil, s.followers, isReplay
	}
	return s.turns[at], s.followers, isReplay
}

// setFull notes that a queue of the session holds too much, or no longer does.
func (s *Session) setFull(isFull bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isFull {
		s.full++
	} else {
		s.full--
	}
	s.applyPause()
}

// awaitAnswer keeps the worker running until the returned function is called: the answer to a request comes after the
// lines that wait.
func (s *Session) awaitAnswer() func() {
	add := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked += n
		s.applyPause()
	}
	add(1)
	return func() { add(-1) }
}

// applyPause asks the hub to pause or resume the session's worker if that has changed. The caller holds the lock.
func (s *Session) applyPause() {
	wanted := s.full > 0 && s.asked == 0
	if wanted == s.isPaused || s.err != nil {
		return
	}
	s.isPaused = wanted
	s.manager.conn.Post(map[string]any{
		"type": "control_request", "request_id": s.manager.conn.NextRequestID(), "subtype": "flow", "session_id": s.id, "paused": wanted,
	})
}
