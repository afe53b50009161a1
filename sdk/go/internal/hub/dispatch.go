package hub

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/qwen-agent/qwen/sdk/go/wire"
)

// run reads the hub's output to its end.
func (c *Conn) run() {
	var stderr sync.WaitGroup
	stderr.Go(func() { c.records.read(c.process.stderr) })
	lines := newLineReader(c.process.stdout)
	isGreeted := false
	var generation uint64
	for {
		line, err := lines.next()
		if err != nil {
			break
		}
		if len(line) == 0 {
			continue
		}
		if now := c.generation.Load(); now != generation {
			generation = now
			c.texts.forget()
		}
		switch {
		case !isGreeted:
			isGreeted = c.greet(line)
		case !c.texts.deliver(line):
			c.dispatch(line)
		}
	}
	if isWrongProgram := !c.isGone(); isWrongProgram {
		// A hub without output is of no use.
		c.process.kill()
	}
	<-c.process.ended
	stderr.Wait()
	c.process.stdout.Close()
	c.process.stderr.Close()
	c.process.exit.Stderr = c.records.tail.String()
	c.end(isGreeted)
}

// isGone waits a moment for the process to end, whose output is closed.
func (c *Conn) isGone() bool {
	select {
	case <-c.process.ended:
		return true
	case <-time.After(drainTimeout):
		return false
	}
}

// greet reads the first line. It is true once the hub has announced itself.
func (c *Conn) greet(line []byte) bool {
	var hello struct {
		Metadata          wire.Metadata   `json:"metadata"`
		SystemFingerprint string          `json:"system_fingerprint"`
		Error             *wire.ErrorBody `json:"error"`
	}
	// A line of another program leaves the fields empty.
	_ = json.Unmarshal(line, &hello)
	version := hello.Metadata.ProtocolVersion
	switch {
	case hello.Error != nil && hello.Error.Message != "":
		c.refuse(fmt.Sprintf("%s cannot serve sessions: %s", c.config.Path, hello.Error.Message))
		return false
	case version == "":
		shown := string(line[:min(len(line), 200)])
		c.refuse(fmt.Sprintf("%s is not a qwen program: its first line was %q", c.config.Path, shown))
		return false
	case major(version) != major(ProtocolVersion):
		c.refuse(fmt.Sprintf("%s uses protocol version %s, and this SDK uses %s; install matching versions of both", c.config.Path, version, ProtocolVersion))
		return false
	}
	c.hello = Handshake{version, hello.Metadata.Capabilities, hello.SystemFingerprint}
	c.handshake <- nil
	return true
}

func major(version string) string {
	number, _, _ := strings.Cut(version, ".")
	return number
}

// refuse ends the start with an error. Only the first one counts.
func (c *Conn) refuse(message string) {
	select {
	case c.handshake <- &StartError{Message: message}:
	default:
	}
}

// dispatch passes a line to its session, or an answer to the caller that asked.
func (c *Conn) dispatch(line []byte) {
	envelope := ReadEnvelope(line)
	if envelope.Type == wire.ControlResponseTypeControlResponse {
		if c.answer(envelope.RequestID, line) {
			return
		}
	}
	if envelope.Kind() == "" && !envelope.IsMalformed && c.noteFatal(line) {
		return
	}
	c.mu.Lock()
	receiver := c.receivers[envelope.SessionID]
	var all []Receiver
	if envelope.SessionID == "" {
		// A line without a session concerns every session.
		for _, each := range c.receivers {
			all = append(all, each)
		}
	}
	c.mu.Unlock()
	for _, each := range all {
		each.Line(envelope, line)
	}
	if receiver != nil {
		c.texts.learn(line, envelope.PromptID, receiver)
		receiver.Line(envelope, line)
	}
}

// noteFatal keeps a fatal error, which the exit that follows explains.
func (c *Conn) noteFatal(line []byte) bool {
	var fatal wire.FatalError
	if json.Unmarshal(line, &fatal) != nil || fatal.Error.Message == "" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fatal = &fatal.Error
	return true
}

// answer passes an answer to the request that it belongs to; false if no one waits for it.
func (c *Conn) answer(requestID string, line []byte) bool {
	var response struct {
		Response struct {
			Subtype   string          `json:"subtype"`
			RequestID string          `json:"request_id"`
			Result    json.RawMessage `json:"result"`
			Response  json.RawMessage `json:"response"`
			Error     json.RawMessage `json:"error"`
		} `json:"response"`
	}
	if err := json.Unmarshal(line, &response); err != nil {
		return false
	}
	body := response.Response
	if requestID == "" {
		requestID = body.RequestID
	}
	c.mu.Lock()
	answered := c.pending[requestID]
	delete(c.pending, requestID)
	c.mu.Unlock()
	if answered == nil {
		return false
	}
	got := answer{result: body.Result}
	if got.result == nil {
		got.result = body.Response
	}
	if body.Subtype != "success" {
		got.err = refusal(body.Error)
	}
	answered <- got
	return true
}

func refusal(body json.RawMessage) *RequestError {
	var told wire.ControlError
	if json.Unmarshal(body, &told) != nil {
		told.Message = strings.Trim(string(body), `"`)
	}
	return &RequestError{Code: told.Code, Message: told.Message, Retryable: told.Retryable}
}

// end reports the end to everyone who waits.
func (c *Conn) end(wasGreeted bool) {
	if !wasGreeted {
		text := fmt.Sprintf("%s ended before it announced itself (%s); it may not be a qwen program", c.config.Path, describe(c.process.exit))
		if tail := strings.TrimSpace(c.process.exit.Stderr); tail != "" {
			text += ": " + tail
		}
		c.refuse(text)
	}
	c.mu.Lock()
	c.err = &LostError{c.process.exit, c.fatal}
	if c.isClosing {
		c.err = ErrClosed
	}
	err := c.err
	receivers := make([]Receiver, 0, len(c.receivers))
	for _, receiver := range c.receivers {
		receivers = append(receivers, receiver)
	}
	for id, answered := range c.pending {
		answered <- answer{err: err}
		delete(c.pending, id)
	}
	c.mu.Unlock()
	for _, receiver := range receivers {
		receiver.Lost(err)
	}
	close(c.done)
}

func describe(exit Exit) string {
	if exit.Signal != 0 {
		return "signal " + syscall.Signal(exit.Signal).String()
	}
	return "exit code " + strconv.Itoa(exit.Code)
}
