package hub

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"time"
)

// exitRecordTimeout bounds the wait for the record of a worker that has ended: it comes on another pipe than the
// end of the worker's turn.
const exitRecordTimeout = 2 * time.Second

// records reads the hub's structured log: it passes the records to the host's logger and remembers how workers ended.
type records struct {
	logger *slog.Logger
	tail   tail

	mu    sync.Mutex
	exits map[string]Exit
	wake  chan struct{}
}

func newRecords(logger *slog.Logger) *records {
	return &records{logger: logger, exits: map[string]Exit{}, wake: make(chan struct{})}
}

func (r *records) read(pipe io.Reader) {
	lines := newLineReader(pipe)
	for {
		line, err := lines.next()
		if err != nil {
			return
		}
		r.accept(line)
	}
}

func (r *records) accept(line []byte) {
	var record map[string]any
	if json.Unmarshal(line, &record) != nil {
		r.tail.add(line)
		r.logger.Warn("hub", "stderr", string(line))
		return
	}
	text := func(key string) string { value, _ := record[key].(string); return value }
	event := text("event")
	switch event {
	case "worker_exit":
		exit := Exit{Stderr: text("detail")}
		if code, ok := record["exit_code"].(float64); ok {
			exit.Code = int(code)
		}
		if signal, ok := record["signal"].(float64); ok {
			exit.Code, exit.Signal = -1, int(signal)
		}
		if text("reason") != "exit_0" {
			r.note(text("session_id"), exit)
		}
	case "worker_stderr", "error":
		r.tail.add([]byte(text("text")))
	}
	level := slog.LevelDebug
	switch text("level") {
	case "warn", "warning":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	}
	if !r.logger.Enabled(context.Background(), level) {
		return
	}
	attributes := make([]slog.Attr, 0, len(record))
	for key, value := range record {
		if key != "event" && key != "level" && key != "time" {
			attributes = append(attributes, slog.Any(key, value))
		}
	}
	r.logger.LogAttrs(context.Background(), level, "hub "+event, attributes...)
}

func (r *records) note(sessionID string, exit Exit) {
	if sessionID == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exits[sessionID] = exit
	close(r.wake)
	r.wake = make(chan struct{})
}

// await returns and forgets how the session's last worker ended.
func (r *records) await(ctx context.Context, sessionID string, done <-chan struct{}) (Exit, bool) {
	timer := time.NewTimer(exitRecordTimeout)
	defer timer.Stop()
	for {
		r.mu.Lock()
		exit, ok := r.exits[sessionID]
		delete(r.exits, sessionID)
		wake := r.wake
		r.mu.Unlock()
		if ok {
			return exit, true
		}
		select {
		case <-wake:
		case <-timer.C:
			return Exit{}, false
		case <-ctx.Done():
			return Exit{}, false
		case <-done:
			return Exit{}, false
		}
	}
}

// forget drops what is remembered of a session.
func (r *records) forget(sessionID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.exits, sessionID)
}
