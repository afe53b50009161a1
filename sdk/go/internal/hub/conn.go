// Package hub connects to one `qwen hub` process: it starts it, splits its output into lines, passes each line to the
// session that it belongs to, and pairs requests with their answers. It contains no supervision: restarts, heartbeats
// and crash policies are the hub's work.
package hub

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qwen-agent/qwen/sdk/go/wire"
)

// ProtocolVersion is the version that this SDK implements.
const ProtocolVersion = "1.0"

// Receiver gets the lines of one session. Its methods are called one after the other and must not block.
type Receiver interface {
	// Text gets a line that carries nothing but a piece of text.
	Text(promptID, text string, seq uint64, line []byte)
	// Line gets every other line.
	Line(envelope *Envelope, line []byte)
	// Lost reports that the hub is gone.
	Lost(err error)
}

// Config describes the process.
type Config struct {
	Path string
	Args []string
	Env  []string
	Dir  string
	// StartTimeout bounds the time to the handshake.
	StartTimeout time.Duration
	Logger       *slog.Logger
}

// ErrClosed is the reason for which a connection ends that was closed by its owner.
var ErrClosed = errors.New("the connection to the hub is closed")

// StartError reports a program that could not be started or is not a hub of this protocol.
type StartError struct {
	Message string
	Exit    Exit
	Cause   error
}

func (e *StartError) Error() string { return e.Message }
func (e *StartError) Unwrap() error { return e.Cause }

// LostError reports that the hub has ended by itself.
type LostError struct {
	Exit  Exit
	Fatal *wire.ErrorBody
}

func (e *LostError) Error() string {
	how := "exit code " + strconv.Itoa(e.Exit.Code)
	if e.Exit.Signal != 0 {
		how = "signal " + strconv.Itoa(e.Exit.Signal)
	}
	text := "the hub has ended unexpectedly (" + how + ")"
	if e.Fatal != nil {
		text += ": " + e.Fatal.Message
	}
	return text
}

// RequestError is the hub's or a worker's refusal of a request.
type RequestError struct {
	Subtype, Code, Message string
	Retryable              bool
}

func (e *RequestError) Error() string { return e.Subtype + " was refused: " + e.Message }

// Handshake is the hub's first line.
type Handshake struct {
	ProtocolVersion string
	Capabilities    []string
	// Program is the hub's name and version.
	Program string
}

type answer struct {
	result json.RawMessage
	err    error
}

// Conn is a running hub. It is safe for concurrent use.
type Conn struct {
	config    Config
	process   *process
	writer    *lineWriter
	records   *records
	handshake chan error
	hello     Handshake
	texts     textLines
	// generation counts changes of the receivers, after which remembered text lines are void.
	generation atomic.Uint64

	mu        sync.Mutex
	receivers map[string]Receiver
	pending   map[string]chan answer
	isClosing bool
	fatal     *wire.ErrorBody
	err       error
	done      chan struct{}
}

// Start starts the program and waits for its handshake. The context bounds this call only.
func Start(ctx context.Context, config Config) (*Conn, error) {
	started, err := startProcess(config.Path, config.Args, config.Env, config.Dir)
	if err != nil {
		return nil, &StartError{Message: fmt.Sprintf("cannot start %s: %v", config.Path, err), Cause: err}
	}
	c := &Conn{
		config: config, process: started, writer: newLineWriter(), records: &records{logger: config.Logger},
		handshake: make(chan error, 1), receivers: map[string]Receiver{}, pending: map[string]chan answer{},
		done: make(chan struct{}),
	}
	go c.writer.run(started.stdin, started.ended)
	go c.run()
	timer := time.NewTimer(config.StartTimeout)
	defer timer.Stop()
	select {
	case err = <-c.handshake:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = &StartError{Message: fmt.Sprintf("%s wrote no handshake within %v (start time-out); it may not be a qwen program", config.Path, config.StartTimeout)}
	}
	if err != nil {
		c.Kill()
		<-c.done
		var start *StartError
		if errors.As(err, &start) {
			start.Exit = c.process.exit
			start.Message = withStderr(start.Message, start.Exit.Stderr)
		}
		return nil, err
	}
	return c, nil
}

// withStderr adds the last lines that a program wrote to standard error, unless the message has them already.
func withStderr(message, stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	last := strings.Join(lines[max(0, len(lines)-3):], "\n")
	if last == "" || strings.Contains(message, last) {
		return message
	}
	return message + "; its standard error ends with: " + last[max(0, len(last)-500):]
}

// Handshake returns what the hub announced.
func (c *Conn) Handshake() Handshake { return c.hello }

// PID returns the process id of the hub.
func (c *Conn) PID() int { return c.process.cmd.Process.Pid }

// Done is closed once the hub is gone and all its output has been passed on.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended; nil while it is open.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Register passes the lines of a session to its receiver from now on.
func (c *Conn) Register(sessionID string, receiver Receiver) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if _, isTaken := c.receivers[sessionID]; isTaken {
		return fmt.Errorf("qwen: the session %q is already open in this manager; use that one, or close it first", sessionID)
	}
	c.receivers[sessionID] = receiver
	c.generation.Add(1)
	return nil
}

// Unregister passes no more lines to the session's receiver.
func (c *Conn) Unregister(sessionID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.receivers, sessionID)
	c.generation.Add(1)
}

// Rename passes the lines of another session to the receiver: a fork in which the session continues.
func (c *Conn) Rename(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	receiver, ok := c.receivers[from]
	if !ok {
		return
	}
	delete(c.receivers, from)
	c.receivers[to] = receiver
	c.generation.Add(1)
}

// Post queues a line and returns at once. A line for a hub that is gone is dropped.
func (c *Conn) Post(line any) {
	if data, err := encode(line); err == nil {
		// Receivers learn from Lost that the hub is gone.
		_ = c.writer.post(data)
	}
}

// Send writes a line.
func (c *Conn) Send(ctx context.Context, line any) error {
	data, err := encode(line)
	if err != nil {
		return err
	}
	if err := c.writer.send(ctx, data); err != nil {
		return c.explain(ctx, err)
	}
	return nil
}

// explain prefers the end of the hub to the failed write that it caused.
func (c *Conn) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	select {
	case <-c.done:
	case <-time.After(drainTimeout):
	}
	if ended := c.Err(); ended != nil {
		return ended
	}
	return err
}

func encode(line any) ([]byte, error) {
	data, err := json.Marshal(line)
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

// NextRequestID returns an id that no other request has, not even one of an earlier process: the stored lines of
// a session contain the answers to those.
func (c *Conn) NextRequestID() string {
	return "go-" + rand.Text()
}

// Request sends a control request and waits for its answer.
func (c *Conn) Request(ctx context.Context, sessionID, subtype string, fields map[string]any) (json.RawMessage, error) {
	line := map[string]any{"type": "control_request", "subtype": subtype}
	if sessionID != "" {
		line["session_id"] = sessionID
	}
	for key, value := range fields {
		line[key] = value
	}
	return c.Exchange(ctx, subtype, line)
}

// Exchange sends a line under a new request id and waits for the answer to it.
func (c *Conn) Exchange(ctx context.Context, subtype string, line map[string]any) (json.RawMessage, error) {
	id := c.NextRequestID()
	line["request_id"] = id
	answered := make(chan answer, 1)
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	c.pending[id] = answered
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pending, id)
	}()
	if err := c.Send(ctx, line); err != nil {
		return nil, err
	}
	select {
	case got := <-answered:
		var refused *RequestError
		if errors.As(got.err, &refused) {
			refused.Subtype = subtype
		}
		return got.result, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close ends the hub's input and waits for its end. When the context ends first, the hub is killed.
func (c *Conn) Close(ctx context.Context) {
	c.mu.Lock()
	c.isClosing = true
	c.mu.Unlock()
	c.writer.close()
	select {
	case <-c.done:
	case <-ctx.Done():
		c.process.kill()
		<-c.done
	}
}

// Kill ends the hub at once.
func (c *Conn) Kill() {
	c.mu.Lock()
	c.isClosing = true
	c.mu.Unlock()
	c.process.kill()
}
