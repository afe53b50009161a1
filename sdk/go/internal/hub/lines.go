package hub

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// Envelope is the part of a line that decides where it goes.
type Envelope struct {
	Type      string `json:"type"`
	Object    string `json:"object"`
	SessionID string `json:"session_id"`
	PromptID  string `json:"prompt_id"`
	RequestID string `json:"request_id"`
	// Seq is the line's number in its session; 0 if lines are not numbered.
	Seq uint64 `json:"seq"`
	// IsMalformed is true if the line is not a JSON object with fields of the expected types.
	IsMalformed bool `json:"-"`
}

// Kind returns the word that names the line's shape; empty if there is none.
func (e *Envelope) Kind() string {
	if e.Type != "" {
		return e.Type
	}
	return e.Object
}

// ReadEnvelope reads where a line goes. It never fails.
func ReadEnvelope(line []byte) *Envelope {
	var envelope Envelope
	if err := json.Unmarshal(line, &envelope); err != nil {
		// Fields of other types are left out, and the rest is still read.
		var wrongType *json.UnmarshalTypeError
		envelope.IsMalformed = !errors.As(err, &wrongType) || wrongType.Field == ""
	}
	return &envelope
}

// lineReader splits a stream into lines of any length.
type lineReader struct {
	reader *bufio.Reader
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{bufio.NewReaderSize(r, 64*1024)}
}

// next returns the next line without its end. The slice belongs to the caller.
func (l *lineReader) next() ([]byte, error) {
	part, err := l.reader.ReadSlice('\n')
	line := bytes.Clone(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = l.reader.ReadSlice('\n')
		line = append(line, part...)
	}
	if err != nil && len(line) == 0 {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

var (
	textMark = []byte(`"delta":{"content":"`)
	textTail = []byte(`"},"finish_reason":null}]}`)
	seqHead  = []byte(`{"seq":`)
)

// textTarget is the receiver of the pieces of one turn.
type textTarget struct {
	receiver Receiver
	promptID string
}

// textLines reads the lines that carry a piece of text, which are most lines of a stream, without decoding them
// whole. The pieces of a turn start alike: a line with the same start as a line that was decoded differs in its
// text only. The mark cannot be part of a string, where its quotes would be escaped.
type textLines struct {
	targets map[string]textTarget
}

// maxTextHeads bounds the starts that are remembered; they contain the time in seconds.
const maxTextHeads = 256

// split returns the line's number, its start and its text as written; ok is false for any other line.
func splitText(line []byte) (seq uint64, head, text []byte, ok bool) {
	if bytes.HasPrefix(line, seqHead) {
		comma := bytes.IndexByte(line, ',')
		if comma < 0 {
			return 0, nil, nil, false
		}
		number, err := strconv.ParseUint(string(line[len(seqHead):comma]), 10, 64)
		if err != nil {
			return 0, nil, nil, false
		}
		seq, line = number, line[comma:]
	}
	mark := bytes.Index(line, textMark)
	if mark < 0 || !bytes.HasSuffix(line, textTail) {
		return 0, nil, nil, false
	}
	start := mark + len(textMark)
	end := len(line) - len(textTail)
	if end < start {
		return 0, nil, nil, false
	}
	return seq, line[:start], line[start:end], true
}

// deliver passes the text of a line on if the line's start is known.
func (t *textLines) deliver(line []byte) bool {
	seq, head, written, ok := splitText(line)
	if !ok {
		return false
	}
	target, known := t.targets[string(head)]
	if !known {
		return false
	}
	text, ok := unquote(written)
	if !ok || text == "" {
		return false
	}
	target.receiver.Text(target.promptID, text, seq, line)
	return true
}

// learn remembers the start of a line that was decoded.
func (t *textLines) learn(line []byte, promptID string, receiver Receiver) {
	_, head, _, ok := splitText(line)
	if !ok || promptID == "" {
		return
	}
	if len(t.targets) >= maxTextHeads || t.targets == nil {
		t.targets = map[string]textTarget{}
	}
	t.targets[string(head)] = textTarget{receiver, promptID}
}

func (t *textLines) forget() { t.targets = nil }

// unquote returns the string whose JSON form without quotes is given; ok is false if it is not one string.
func unquote(written []byte) (string, bool) {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written), bytes.IndexByte(written, '"') < 0
	}
	quoted := make([]byte, 0, len(written)+2)
	quoted = append(append(append(quoted, '"'), written...), '"')
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return "", false
	}
	return text, true
}

// ReadTextLines passes a line to the receiver as a connection does after it has decoded another line of the same turn. It
// exists for tests.
func ReadTextLines(receiver Receiver, decoded, line []byte) bool {
	var lines textLines
	lines.learn(decoded, ReadEnvelope(decoded).PromptID, receiver)
	return lines.deliver(line)
}
