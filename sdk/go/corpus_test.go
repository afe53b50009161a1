package qwen

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/qwen-agent/qwen/sdk/go/internal/hub"
	"github.com/qwen-agent/qwen/sdk/go/wire"
)

const corpus = "../../corpus"

type corpusTurn struct {
	PromptID string `json:"prompt_id"`
	Status   string `json:"status"`
	Reply    string `json:"reply"`
}

func corpusLines(t *testing.T, path string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(corpus, path))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".gz") {
		reader, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if data, err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
	return bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
}

// readLine reads a line as a session does, without a session.
func readLine(reader *turnReader, line []byte) (*hub.Envelope, []Message) {
	envelope := hub.ReadEnvelope(line)
	return envelope, reader.read(Meta{SessionID: envelope.SessionID, PromptID: envelope.PromptID, Raw: line}, envelope, line)
}

func TestTheCorpusReadsAsItsManifestSays(t *testing.T) {
	var manifest struct {
		Traces []struct {
			Turns []corpusTurn
			Files []struct {
				Path, Dialect, Format string
				Lines                 int
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(corpus, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, trace := range manifest.Traces {
		for _, file := range trace.Files {
			if file.Dialect != "qwen" || !strings.HasPrefix(file.Format, "stream-") {
				continue
			}
			files++
			t.Run(file.Path, func(t *testing.T) {
				lines := corpusLines(t, file.Path)
				if len(lines) != file.Lines {
					t.Fatalf("%d lines", len(lines))
				}
				readers := map[string]*turnReader{}
				var turns []corpusTurn
				for _, line := range lines {
					prompt := hub.ReadEnvelope(line).PromptID
					if readers[prompt] == nil {
						readers[prompt] = &turnReader{}
					}
					_, messages := readLine(readers[prompt], line)
					for _, message := range messages {
						switch message := message.(type) {
						case *Unknown:
							t.Errorf("unknown: %.300s", line)
						case *Result:
							if message.Raw.Decode(&struct{ Metadata *wire.Metadata }{}) == nil && bytes.Contains(line, []byte(`"turn":`)) {
								turns = append(turns, corpusTurn{prompt, string(message.Status), message.Text})
							}
						}
					}
				}
				if !reflect.DeepEqual(turns, trace.Turns) {
					t.Errorf("read %+v\nthe manifest has %+v", turns, trace.Turns)
				}
			})
		}
	}
	if files < 40 {
		t.Errorf("only %d files", files)
	}
}

func TestTheExamplesOfTheSpecificationAreKnownLines(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(corpus, "spec-examples", "spec1-*"))
	if err != nil || len(paths) < 10 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if slices.ContainsFunc([]string{"request", "hint-request", "input"}, func(part string) bool { return strings.Contains(name, part) }) && !strings.Contains(name, "control-request") {
			continue
		}
		lines := corpusLines(t, filepath.Join("spec-examples", name))
		if strings.HasSuffix(name, ".json") {
			lines = [][]byte{bytes.Join(lines, []byte("\n"))}
		}
		for _, line := range lines {
			_, messages := readLine(&turnReader{}, line)
			for _, message := range messages {
				if _, isUnknown := message.(*Unknown); isUnknown {
					t.Errorf("%s: %.300s", name, line)
				}
			}
		}
	}
}

func TestReadingNeverFailsWhateverTheLineIs(t *testing.T) {
	lines := []string{"", "{", "null", "[]", "3", `"x"`, "{}", `{"type":7}`, `{"type":"x-new","a":1}`, `{"choices":{}}`, `{"choices":[null]}`,
		`{"object":"chat.completion"}`, `{"object":"chat.completion","choices":[{}]}`, `{"object":"chat.completion.chunk","choices":[{"delta":{"tool_calls":[{}]}}]}`,
		`{"object":"chat.completion.chunk","choices":[{"delta":{"tool_calls":[{"index":99999999999999}]}}]}`, `{"object":"chat.completion.chunk","choices":[{"delta":{"tool_calls":[{"index":-1}]}}]}`,
		`{"type":"control_response"}`, `{"error":"text"}`, "\x00", strings.Repeat("[", 20_000)}
	for _, line := range lines {
		readLine(&turnReader{}, []byte(line))
	}
}

// Every value in every field of every line of the corpus: nothing panics, and the line is still delivered.
func TestAnyValueInAnyFieldIsReadWithoutAnError(t *testing.T) {
	values := []any{nil, true, -1, 1.5, "text", []any{}, []any{map[string]any{}}, map[string]any{}, "1e400"}
	for _, path := range []string{"one-tool/qwen.jsonl", "one-tool/qwen.stream-chunk-json.jsonl", "side-lines/qwen.jsonl", "denied-tool/qwen.jsonl"} {
		for _, line := range corpusLines(t, path) {
			var fields map[string]any
			if err := json.Unmarshal(line, &fields); err != nil {
				t.Fatal(err)
			}
			for name, old := range fields {
				for _, value := range values {
					fields[name] = value
					changed, err := json.Marshal(fields)
					if err != nil {
						t.Fatal(err)
					}
					readLine(&turnReader{}, changed)
				}
				fields[name] = old
			}
		}
	}
}

// Both ways to read a piece of text give the same message.
func TestPiecesAreReadAlikeWhetherOrNotTheirLineIsDecodedWhole(t *testing.T) {
	for _, text := range []string{"plain", "with \"quotes\" and \\ and \n and \u0000", "完了 🎉", `"delta":{"content":"`, `"},"finish_reason":null}]}`, `\"`, " "} {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Appendf(nil, `{"object":"chat.completion.chunk","session_id":"s","prompt_id":"p","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`, quoted)
		_, messages := readLine(&turnReader{}, line)
		if len(messages) != 1 || messages[0].(*Text).Text != text {
			t.Errorf("%q: %+v", text, messages)
		}
		receiver := &textReceiver{}
		hub.ReadTextLines(receiver, line, line)
		if !slices.Equal(receiver.texts, []string{text}) {
			t.Errorf("%q: %q", text, receiver.texts)
		}
	}
}

type textReceiver struct{ texts []string }

func (r *textReceiver) Text(_, text string, _ uint64, _ []byte) { r.texts = append(r.texts, text) }
func (*textReceiver) Line(*hub.Envelope, []byte)                {}
func (*textReceiver) Lost(error)                                {}

// Every field of SessionOptions is a default of the manager and is inherited.
func TestSessionsInheritEveryOptionOfTheirManager(t *testing.T) {
	of := reflect.TypeFor[SessionOptions]()
	manager := reflect.TypeFor[Options]()
	for i := range of.NumField() {
		field := of.Field(i)
		if field.Name == "ID" || field.Name == "At" {
			continue
		}
		shared, ok := manager.FieldByName(field.Name)
		if !ok || shared.Type != field.Type {
			t.Errorf("Options has no field %s %v", field.Name, field.Type)
		}
	}
	options := Options{Model: "m", Dir: "d", OnCrash: CrashFork, PermissionMode: ModePlan, Env: map[string]string{"A": "1"}, Limits: Limits{MaxTurns: 3}}
	merged := SessionOptions{Dir: "e", Env: map[string]string{"B": "2"}}.over(options.sessionDefaults())
	if merged.Model != "m" || merged.Dir != "e" || merged.OnCrash != CrashFork || len(merged.Env) != 2 || merged.Limits.MaxTurns != 3 {
		t.Errorf("%+v", merged)
	}
}
