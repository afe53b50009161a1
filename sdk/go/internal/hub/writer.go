package hub

import (
	"context"
	"io"
	"sync"
)

// lineWriter writes whole lines in the order in which they were given. No caller waits for a pipe that is full
// longer than its context allows, and a line that was started is always finished.
type lineWriter struct {
	mu     sync.Mutex
	queue  []queuedLine
	closed bool
	err    error
	wake   chan struct{}
}

type queuedLine struct {
	line []byte
	// written is closed once the line is in the pipe or the pipe has failed; nil if no one waits.
	written chan struct{}
}

func newLineWriter() *lineWriter {
	return &lineWriter{wake: make(chan struct{}, 1)}
}

// post queues a line and returns at once.
func (w *lineWriter) post(line []byte) error {
	return w.enqueue(queuedLine{line: line})
}

// send queues a line and waits until it is in the pipe.
func (w *lineWriter) send(ctx context.Context, line []byte) error {
	written := make(chan struct{})
	if err := w.enqueue(queuedLine{line, written}); err != nil {
		return err
	}
	select {
	case <-written:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *lineWriter) enqueue(line queuedLine) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return io.ErrClosedPipe
	}
	w.queue = append(w.queue, line)
	w.signal()
	return nil
}

func (w *lineWriter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// close ends the input once all queued lines are written.
func (w *lineWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.signal()
}

// run writes until the writer is closed, the pipe fails or the process has ended.
func (w *lineWriter) run(pipe io.WriteCloser, ended <-chan struct{}) {
	defer pipe.Close()
	for {
		w.mu.Lock()
		batch, closed := w.queue, w.closed
		w.queue = nil
		w.mu.Unlock()
		for i, each := range batch {
			if _, err := pipe.Write(each.line); err != nil {
				w.fail(err, batch[i:])
				return
			}
			if each.written != nil {
				close(each.written)
			}
		}
		if closed && len(batch) == 0 {
			return
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-w.wake:
		case <-ended:
			w.fail(io.ErrClosedPipe, nil)
			return
		}
	}
}

func (w *lineWriter) fail(err error, rest []queuedLine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	for _, each := range append(rest, w.queue...) {
		if each.written != nil {
			close(each.written)
		}
	}
	w.queue = nil
}
