package qwen

import (
	"context"
	"sync"
)

// messageQueue holds the messages of a turn or a follower until they are read. The reader of the hub's output fills it
// and never waits; with too much in it, the session's worker is paused.
type messageQueue struct {
	// onFull is called with true when the queue holds too much, and with false when there is room again.
	onFull func(isFull bool)

	mu      sync.Mutex
	items   []Message
	bytes   int
	inHand  int
	isFull  bool
	isEnded bool
	// err is returned once all messages are read.
	err  error
	wake chan struct{}
}

const (
	highWater = 4 << 20
	lowWater  = 1 << 20
	// messageCost estimates the memory of a message besides its line.
	messageCost = 256
)

func newMessageQueue(onFull func(bool)) *messageQueue {
	return &messageQueue{onFull: onFull, wake: make(chan struct{}, 1)}
}

func (q *messageQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// push adds a message. It is dropped if the queue has ended.
func (q *messageQueue) push(message Message) {
	q.mu.Lock()
	if q.isEnded {
		q.mu.Unlock()
		return
	}
	q.items = append(q.items, message)
	q.bytes += len(message.Info().Raw) + messageCost
	isNowFull := !q.isFull && q.bytes+q.inHand > highWater
	q.isFull = q.isFull || isNowFull
	q.mu.Unlock()
	q.signal()
	if isNowFull {
		q.onFull(true)
	}
}

// end ends the queue after the messages that are in it. Only the first end counts.
func (q *messageQueue) end(err error) {
	q.mu.Lock()
	if !q.isEnded {
		q.isEnded, q.err = true, err
	}
	q.mu.Unlock()
	q.signal()
}

// drop ends the queue and forgets what is in it.
func (q *messageQueue) drop() {
	q.mu.Lock()
	q.isEnded = true
	q.items, q.bytes, q.inHand = nil, 0, 0
	wasFull := q.isFull
	q.isFull = false
	q.mu.Unlock()
	q.signal()
	if wasFull {
		q.onFull(false)
	}
}

// take returns all messages that are in the queue and waits if there are none. `read` is the batch of the call before,
// which is used again. At the end it returns no messages and the cause, which is nil after a complete turn.
func (q *messageQueue) take(ctx context.Context, read []Message) ([]Message, error) {
	clear(read)
	for {
		q.mu.Lock()
		q.inHand = 0
		if len(q.items) > 0 {
			batch := q.items
			q.items, q.inHand, q.bytes = read[:0], q.bytes, 0
			q.mu.Unlock()
			return batch, nil
		}
		hasRoom := q.isFull && q.bytes <= lowWater
		q.isFull = q.isFull && !hasRoom
		isEnded, err := q.isEnded, q.err
		q.mu.Unlock()
		if hasRoom {
			q.onFull(false)
		}
		if isEnded {
			return nil, err
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
