package qwen

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/qwen-agent/qwen/sdk/go/internal/hub"
)

// Manager makes sessions that share one `qwen hub`. It is safe for concurrent use.
type Manager struct {
	options  Options
	defaults SessionOptions
	conn     *hub.Conn

	mu       sync.Mutex
	sessions map[*Session]struct{}
	isClosed bool
	closed   chan struct{}
}

// Open starts a hub. The context bounds this call only: ending it later does not affect the manager. Close the manager
// when it is no longer needed.
func Open(ctx context.Context, options Options) (*Manager, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	options.Timeouts = options.Timeouts.withDefaults()
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Telemetry == nil {
		options.Telemetry = noTelemetry{}
	}
	defaults := options.sessionDefaults()
	if err := defaults.check(); err != nil {
		return nil, err
	}
	conn, err := startHub(ctx, &options)
	if err != nil {
		return nil, err
	}
	hello := conn.Handshake()
	options.Logger.Debug("hub started", "pid", conn.PID(), "program", hello.Program, "protocol", hello.ProtocolVersion)
	return &Manager{
		options: options, defaults: defaults, conn: conn, sessions: map[*Session]struct{}{}, closed: make(chan struct{}),
	}, nil
}

// PID returns the process id of the hub.
func (m *Manager) PID() int { return m.conn.PID() }

// Program returns the name and version of the qwen program, such as `qwen-0.1.0`.
func (m *Manager) Program() string { return m.conn.Handshake().Program }

// CreateSession opens a new session. Its worker starts with the first prompt, or at once if the session brings hooks,
// tools, agents or instructions.
func (m *Manager) CreateSession(ctx context.Context, options SessionOptions) (*Session, error) {
	return m.open(ctx, options, func(*SessionOptions) (string, error) { return "", nil })
}

// ResumeSession continues a session with its history. An unknown id is [ErrSessionNotFound].
func (m *Manager) ResumeSession(ctx context.Context, id string, options SessionOptions) (*Session, error) {
	if !sessionIDPattern.MatchString(id) {
		return nil, &taggedError{ErrSessionNotFound, fmt.Sprintf("%q is not a session id", id), nil}
	}
	if options.At != "" {
		return nil, errors.New("qwen: a session is resumed at its end; fork it at the point instead")
	}
	options.ID = id
	return m.open(ctx, options, func(merged *SessionOptions) (string, error) {
		return "", m.require(ctx, id, merged)
	})
}

// ForkSession makes a new session with the history of another, which stays as it is and may be running. With
// [SessionOptions].At it copies the history up to that prompt or checkpoint.
func (m *Manager) ForkSession(ctx context.Context, id string, options SessionOptions) (*Session, error) {
	return m.open(ctx, options, func(merged *SessionOptions) (string, error) {
		if err := m.require(ctx, id, merged); err != nil {
			return "", err
		}
		if merged.At == "" {
			return id, nil
		}
		return "", forkAt(ctx, m.options.Binary, id, merged.At, merged.ID, merged)
	})
}

// require checks that a session exists, in the host's store or on disk.
func (m *Manager) require(ctx context.Context, id string, options *SessionOptions) error {
	notFound := &taggedError{ErrSessionNotFound, fmt.Sprintf("there is no session %q", id), nil}
	if !sessionIDPattern.MatchString(id) {
		return notFound
	}
	if options.Worker.Tenant != "" {
		// A tenant's sessions are in a place that only the hub knows.
		return nil
	}
	if err := newMirror(m.options.Store, id, options.Env).restore(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(sessionFile(options.Env, id)); err != nil {
		return notFound
	}
	return nil
}

// open opens a session. `prepare` returns the session to fork from, if the hub is to fork one.
func (m *Manager) open(ctx context.Context, options SessionOptions, prepare func(*SessionOptions) (string, error)) (*Session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	merged := options.over(m.defaults)
	if err := merged.check(); err != nil {
		return nil, err
	}
	if merged.ID == "" {
		merged.ID = newID()
	}
	forkFrom, err := prepare(&merged)
	if err != nil {
		return nil, err
	}
	s := newSession(m, merged)
	m.mu.Lock()
	if m.isClosed {
		m.mu.Unlock()
		return nil, ErrClosed
	}
	m.sessions[s] = struct{}{}
	m.mu.Unlock()
	if err := s.open(ctx, forkFrom); err != nil {
		// Close reports its own failures to the logger.
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Run runs one prompt in a new session.
func (m *Manager) Run(ctx context.Context, prompt string, options ...TurnOption) (*Result, error) {
	s, err := m.CreateSession(ctx, SessionOptions{})
	if err != nil {
		return nil, err
	}
	result, err := s.Run(ctx, prompt, options...)
	return result, errors.Join(err, s.Close())
}

// Stream runs one prompt in a new session, which ends with the iteration.
func (m *Manager) Stream(ctx context.Context, prompt string, options ...TurnOption) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		s, err := m.CreateSession(ctx, SessionOptions{})
		if err != nil {
			yield(nil, err)
			return
		}
		defer s.Close()
		s.Stream(ctx, prompt, options...)(yield)
	}
}

// Status returns the state of the hub: workers, queue and sessions. docs/hub.md describes it.
func (m *Manager) Status(ctx context.Context) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.options.Timeouts.Request, &TimeoutError{"Request", m.options.Timeouts.Request})
	defer cancel()
	answer, err := m.conn.Request(ctx, "", "hub/status", nil)
	return answer, publicError(err)
}

// Close closes every session and ends the hub. Running turns are cancelled. It returns within [Timeouts].Close and may
// be called from any goroutine, several times.
func (m *Manager) Close() error {
	m.mu.Lock()
	if m.isClosed {
		m.mu.Unlock()
		<-m.closed
		return nil
	}
	m.isClosed = true
	sessions := slices.Collect(maps.Keys(m.sessions))
	m.mu.Unlock()
	defer close(m.closed)
	ctx, cancel := context.WithTimeout(context.Background(), m.options.Timeouts.Close)
	defer cancel()
	errs := make([]error, len(sessions))
	var closing sync.WaitGroup
	for i, s := range sessions {
		closing.Go(func() { errs[i] = s.shutdown(ctx) })
	}
	closing.Wait()
	m.conn.Close(ctx)
	m.options.Logger.Debug("hub ended")
	return errors.Join(errs...)
}

func (m *Manager) forget(s *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sessions, s)
}

// newID returns a random id in the form of a UUID.
func newID() string {
	var b [16]byte
	// It never fails: the program ends if the system has no random numbers.
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}
