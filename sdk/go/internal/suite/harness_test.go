// Package suite tests the SDK with the real binary; only the model is scripted. sdk/BEHAVIOURS.md lists what every test
// demonstrates.
package suite

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

// patience bounds every wait of the suite; a test that needs it fails.
const patience = 60 * time.Second

func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "..")
}

func binary() string {
	if path := os.Getenv("QWEN_BIN"); path != "" {
		return path
	}
	return filepath.Join(root(), "target", "debug", "qwen")
}

func mockModel() string {
	if path := os.Getenv("MOCK_MODEL_BIN"); path != "" {
		return path
	}
	return filepath.Join(filepath.Dir(binary()), "mock-model")
}

type step = map[string]any

// say is one reply of the model; a string is a piece of text.
func say(steps ...any) map[string]any {
	list := make([]any, len(steps))
	for i, each := range steps {
		if text, ok := each.(string); ok {
			each = step{"text": text}
		}
		list[i] = each
	}
	return map[string]any{"steps": list}
}

func call(name string, arguments any) step {
	return step{"tool_call": step{"name": name, "arguments": arguments}}
}

// gate holds the model until the test opens it.
func gate(name string) step { return step{"gate": name} }

// place is a home, a workspace and a model.
type place struct {
	t      *testing.T
	home   string
	work   string
	env    map[string]string
	origin string
	client *http.Client
}

// Variables of this process that could lead a worker to another model.
var foreign = []string{"OPENAI_", "ANTHROPIC_", "DASHSCOPE_", "QWEN_", "CLAUDE_"}

// newPlace starts a model that gives these replies. The test fails if it leaves a process, a goroutine or a descriptor.
func newPlace(t *testing.T, replies ...map[string]any) *place {
	t.Helper()
	return startPlace(t, map[string]any{"replies": append([]map[string]any{}, replies...)})
}

// newLoopingPlace starts a model that begins again after its last reply.
func newLoopingPlace(t *testing.T, replies ...map[string]any) *place {
	t.Helper()
	return startPlace(t, map[string]any{"replies": replies, "loop": true})
}

func startPlace(t *testing.T, script any) *place {
	t.Helper()
	checkLeaks(t)
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if slices.ContainsFunc(foreign, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			// Setenv restores the variable after the test.
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	t.Setenv("QWEN_BIN", binary())
	folder := t.TempDir()
	p := &place{t: t, home: filepath.Join(folder, "home"), work: filepath.Join(folder, "work"), client: &http.Client{Transport: &http.Transport{}}}
	for _, each := range []string{p.home, p.work} {
		must(t, os.Mkdir(each, 0o755))
	}
	text, err := json.Marshal(script)
	must(t, err)
	path := filepath.Join(folder, "script.json")
	must(t, os.WriteFile(path, text, 0o644))
	server := exec.Command(mockModel(), "--script", path)
	server.Stderr = os.Stderr
	input, err := server.StdinPipe()
	must(t, err)
	output, err := server.StdoutPipe()
	must(t, err)
	must(t, server.Start())
	line, err := bufio.NewReader(output).ReadBytes('\n')
	must(t, err)
	var hello struct {
		BaseURL string `json:"base_url"`
		Origin  string `json:"origin"`
	}
	must(t, json.Unmarshal(line, &hello))
	p.origin = hello.Origin
	t.Cleanup(func() {
		p.control(http.MethodPost, "reset")
		p.client.CloseIdleConnections()
		input.Close()
		server.Wait()
	})
	p.env = map[string]string{
		"HOME": p.home, "QWEN_HOME": filepath.Join(p.home, ".qwen"),
		"OPENAI_BASE_URL": hello.BaseURL, "OPENAI_API_KEY": "sk-test", "OPENAI_MODEL": "mock",
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *place) control(method, path string) []byte {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, p.origin+"/control/"+path, nil)
	must(p.t, err)
	answer, err := p.client.Do(request)
	must(p.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(p.t, err)
	if answer.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %s: %s", method, path, body)
	}
	return body
}

func (p *place) open(name string) { p.t.Helper(); p.control(http.MethodPost, "open/"+name) }

type modelMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type modelRequest struct {
	Messages []modelMessage `json:"messages"`
	Model    string         `json:"model"`
	Tools    []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// text joins the texts of a message of the model.
func (m modelMessage) text() string {
	var plain string
	if json.Unmarshal(m.Content, &plain) == nil {
		return plain
	}
	var parts []struct {
		Text string `json:"text"`
	}
	json.Unmarshal(m.Content, &parts)
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
	}
	return b.String()
}

func (p *place) requests() []modelRequest {
	p.t.Helper()
	var listed []struct {
		Body modelRequest `json:"body"`
	}
	must(p.t, json.Unmarshal(p.control(http.MethodGet, "requests"), &listed))
	requests := make([]modelRequest, len(listed))
	for i, each := range listed {
		requests[i] = each.Body
	}
	return requests
}

// texts returns what messages of these roles said in the last request.
func (p *place) texts(roles ...string) []string {
	p.t.Helper()
	requests := p.requests()
	if len(requests) == 0 {
		return nil
	}
	var found []string
	for _, message := range requests[len(requests)-1].Messages {
		if slices.Contains(roles, message.Role) {
			found = append(found, message.text())
		}
	}
	return found
}

// options returns options for sessions in this place.
func (p *place) options() qwen.Options {
	return qwen.Options{Dir: p.work, Env: p.env}
}

// manager opens a manager that is closed with the test.
func (p *place) manager(options qwen.Options) *qwen.Manager {
	p.t.Helper()
	m, err := qwen.Open(p.ctx(), options)
	must(p.t, err)
	p.t.Cleanup(func() { m.Close() })
	return m
}

func (p *place) session(options qwen.Options) *qwen.Session {
	p.t.Helper()
	s, err := p.manager(options).CreateSession(p.ctx(), qwen.SessionOptions{})
	must(p.t, err)
	return s
}

// ctx ends when the test's patience does.
func (p *place) ctx() context.Context { return testContext(p.t) }

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// file writes a file into the workspace and returns its path.
func (p *place) file(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.work, name)
	must(p.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// collect returns all messages of a stream, which must end without an error.
func collect(t *testing.T, stream func(func(qwen.Message, error) bool)) []qwen.Message {
	t.Helper()
	var all []qwen.Message
	for message, err := range stream {
		must(t, err)
		all = append(all, message)
	}
	return all
}

// only returns the messages of one type.
func only[T qwen.Message](messages []qwen.Message) []T {
	var found []T
	for _, message := range messages {
		if wanted, ok := message.(T); ok {
			found = append(found, wanted)
		}
	}
	return found
}

// until waits until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// checkLeaks fails the test if it leaves a child process, a goroutine of the SDK or a descriptor.
func checkLeaks(t *testing.T) {
	t.Helper()
	before := descriptors()
	t.Cleanup(func() {
		until(t, "no child is left", func() bool { return len(children(os.Getpid())) == 0 })
		until(t, "no goroutine of the SDK is left:\n"+sdkGoroutines(), func() bool { return sdkGoroutines() == "" })
		until(t, fmt.Sprintf("no descriptor is left (%d before, now %d)", before, descriptors()), func() bool { return descriptors() <= before })
	})
}

func descriptors() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// sdkGoroutines returns the stacks of goroutines in the SDK, except for the tests themselves.
func sdkGoroutines() string {
	buffer := make([]byte, 4<<20)
	buffer = buffer[:runtime.Stack(buffer, true)]
	var found []string
	for stack := range strings.SplitSeq(string(buffer), "\n\n") {
		if strings.Contains(stack, "suite.checkLeaks") {
			continue
		}
		if strings.Contains(stack, "qwen/sdk/go.") || strings.Contains(stack, "qwen/sdk/go/internal/hub.") {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}

// children returns the processes whose parent is the given one.
func children(parent int) []int {
	entries, _ := os.ReadDir("/proc")
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		status, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "status"))
		if err == nil && bytes.Contains(status, fmt.Appendf(nil, "\nPPid:\t%d\n", parent)) && !bytes.Contains(status, []byte("\nState:\tZ")) {
			found = append(found, pid)
		}
	}
	return found
}

// workers returns the worker processes of a hub: its children that run the binary.
func workers(t *testing.T, hub int) []int {
	t.Helper()
	return children(hub)
}

// isRunning reports whether a process exists and is not a zombie.
func isRunning(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !bytes.Contains(status, []byte("\nState:\tZ"))
}

// recorder is a handler that keeps records.
type recorder struct {
	mu      *sync.Mutex
	records *[]map[string]any
	attrs   []slog.Attr
}

func newRecorder() *recorder { return &recorder{mu: &sync.Mutex{}, records: &[]map[string]any{}} }

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithGroup(string) slog.Handler            { return r }
func (r *recorder) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &recorder{r.mu, r.records, append(slices.Clone(r.attrs), attrs...)}
}

func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	kept := map[string]any{"msg": record.Message, "level": record.Level}
	for _, attr := range r.attrs {
		kept[attr.Key] = attr.Value.Any()
	}
	record.Attrs(func(attr slog.Attr) bool { kept[attr.Key] = attr.Value.Any(); return true })
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.records = append(*r.records, kept)
	return nil
}

// with returns the records with this message.
func (r *recorder) with(message string) []map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []map[string]any
	for _, record := range *r.records {
		if record["msg"] == message {
			found = append(found, record)
		}
	}
	return found
}

func (r *recorder) count(message string) int { return len(r.with(message)) }

func compress(t *testing.T, data []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	_, err := writer.Write(data)
	must(t, err)
	must(t, writer.Close())
	return buffer.Bytes()
}

// stopAll stops processes until the returned function is called.
func stopAll(t *testing.T, processes []int) func() {
	t.Helper()
	for _, pid := range processes {
		must(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	return func() {
		for _, pid := range processes {
			// It may have been ended meanwhile.
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// processorTime returns what this process has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
