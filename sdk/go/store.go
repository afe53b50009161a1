package qwen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// Store keeps sessions besides the local disk. A session is an append-only text of JSON lines. Append is called before
// the result of a turn is delivered, so what the host has seen is stored. Calls for one session never overlap.
type Store interface {
	// Load returns the whole text of a session; an error that is [ErrSessionNotFound] if the store does not have it.
	Load(ctx context.Context, sessionID string) ([]byte, error)
	// Append adds whole lines to the text of a session, which begins empty.
	Append(ctx context.Context, sessionID string, lines []byte) error
}

// sessionFile is where workers with this environment keep a session.
func sessionFile(env map[string]string, sessionID string) string {
	look := func(name string) string {
		if value, ok := env[name]; ok {
			return value
		}
		return os.Getenv(name)
	}
	home := look("QWEN_HOME")
	if home == "" {
		home = filepath.Join(look("HOME"), ".qwen")
	}
	return filepath.Join(home, "sessions", sessionID+".jsonl")
}

// mirror copies a session between its file and a store.
type mirror struct {
	store     Store
	sessionID string
	file      string

	// fork is the session that is copied from the next flush on; nil if it stays the same.
	fork atomic.Pointer[string]

	mu     sync.Mutex
	stored int64
}

func newMirror(store Store, sessionID string, env map[string]string) *mirror {
	if store == nil {
		return nil
	}
	return &mirror{store: store, sessionID: sessionID, file: sessionFile(env, sessionID)}
}

func storeError(err error) error {
	return &taggedError{ErrStore, err.Error(), err}
}

// restore writes the session's file from the store, unless the file exists.
func (m *mirror) restore(ctx context.Context) error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	text, err := m.store.Load(ctx, m.sessionID)
	if errors.Is(err, ErrSessionNotFound) {
		return nil
	}
	if err != nil {
		return storeError(err)
	}
	m.stored = int64(len(text))
	if _, err := os.Stat(m.file); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(m.file), 0o700); err != nil {
		return storeError(err)
	}
	file, err := os.OpenFile(m.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return storeError(err)
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return storeError(err)
	}
	return nil
}

// follow copies a fork of the session from the next flush on. It never waits for the store.
func (m *mirror) follow(sessionID string) {
	if m != nil {
		m.fork.Store(&sessionID)
	}
}

// flush passes new lines on. The worker has synced them before it wrote the terminal record.
func (m *mirror) flush(ctx context.Context) error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	fork := m.fork.Swap(nil)
	if err := m.copy(ctx); err != nil || fork == nil {
		return err
	}
	m.sessionID, m.stored = *fork, 0
	m.file = filepath.Join(filepath.Dir(m.file), *fork+".jsonl")
	return m.copy(ctx)
}

// copy passes the new lines of the current file on. The caller holds the lock.
func (m *mirror) copy(ctx context.Context) error {
	file, err := os.Open(m.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return storeError(err)
	}
	defer file.Close()
	if _, err := file.Seek(m.stored, io.SeekStart); err != nil {
		return storeError(err)
	}
	added, err := io.ReadAll(file)
	if err != nil {
		return storeError(err)
	}
	whole := added[:bytes.LastIndexByte(added, '\n')+1]
	if len(whole) == 0 {
		return nil
	}
	if err := m.store.Append(ctx, m.sessionID, whole); err != nil {
		return storeError(err)
	}
	m.stored += int64(len(whole))
	return nil
}
