package hub

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
)

// records reads the hub's structured log: it passes the records to the host's logger and keeps the end of what was
// written to standard error.
type records struct {
	logger *slog.Logger
	tail   tail
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
	if event == "worker_stderr" || event == "error" {
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
