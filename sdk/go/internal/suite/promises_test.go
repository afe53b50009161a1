package suite

import (
	"archive/zip"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

func TestTheLoggerOfTheHostGetsStructuredRecords(t *testing.T) {
	p := newPlace(t, say("logged"))
	options := p.options()
	records := newRecorder()
	options.Logger = slog.New(records)
	m := p.manager(options)
	s, err := m.CreateSession(p.ctx(), qwen.SessionOptions{})
	must(t, err)
	_, err = s.Run(p.ctx(), "Hello.")
	must(t, err)
	must(t, m.Close())
	ended := records.with("turn ended")
	if len(ended) != 1 || ended[0]["session_id"] != s.ID() || ended[0]["status"] != "done" || ended[0]["prompt_id"] == nil {
		t.Errorf("%v", ended)
	}
	// The hub's own records arrive too.
	if started := records.with("hub worker_start"); len(started) != 1 || started[0]["pid"] == nil {
		t.Errorf("%v", started)
	}
	if records.count("hub started") != 1 || records.count("session closed") != 1 {
		t.Error("records are missing")
	}
}

// spanTelemetry is a tracer of the host that is not OpenTelemetry.
type spanTelemetry struct {
	turns, tools chan string
	ended        chan *qwen.Result
}

func (s *spanTelemetry) StartTurn(_ context.Context, turn qwen.TurnInfo) (qwen.TraceContext, func(*qwen.Result, error)) {
	s.turns <- turn.PromptID
	trace := qwen.TraceContext{Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	return trace, func(result *qwen.Result, _ error) { s.ended <- result }
}

func (s *spanTelemetry) StartTool(ctx context.Context, tool qwen.ToolInfo) (context.Context, func(error)) {
	s.tools <- tool.Traceparent
	return ctx, func(error) {}
}

func TestOneTraceLeadsFromTheSpanOfTheHostToTheTool(t *testing.T) {
	p := newPlace(t, say(call("mcp__calc__add", sum{1, 2})), say("3"))
	spans := filepath.Join(p.home, "spans.jsonl")
	options := allowTools(p.options(), calculator(func(_ context.Context, in sum) (int, error) { return in.X + in.Y, nil }))
	telemetry := &spanTelemetry{make(chan string, 1), make(chan string, 1), make(chan *qwen.Result, 1)}
	options.Telemetry = telemetry
	options.Worker.Args = []string{"--telemetry", "--telemetry-outfile=" + spans}
	m := p.manager(options)
	result, err := m.Run(p.ctx(), "Add.")
	must(t, err)
	must(t, m.Close())
	if prompt := <-telemetry.turns; prompt != result.PromptID {
		t.Error(prompt)
	}
	if ended := <-telemetry.ended; ended != result {
		t.Errorf("%+v", ended)
	}
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	if traceparent := <-telemetry.tools; !strings.Contains(traceparent, trace) {
		t.Errorf("the tool's span is in another trace: %q", traceparent)
	}
	written, err := os.ReadFile(spans)
	must(t, err)
	if !strings.Contains(string(written), trace) {
		t.Error("the worker's spans are in another trace")
	}
}

// snippets returns the Go blocks of the README.
func snippets(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(), "sdk", "go", "README.md"))
	must(t, err)
	var found []string
	for _, match := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1])
	}
	return found
}

// buildSnippet compiles a block of the README as the body of a program.
func buildSnippet(t *testing.T, before, body, after string) string {
	t.Helper()
	imports := map[string]string{"fmt.": "fmt", "log.": "log", "strings.": "strings"}
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n\t\"context\"\n")
	for use, name := range imports {
		if strings.Contains(before+body+after, use) {
			fmt.Fprintf(&b, "\t%q\n", name)
		}
	}
	b.WriteString("\n\tqwen \"github.com/qwen-agent/qwen/sdk/go\"\n)\n\nfunc main() {\n\tctx := context.Background()\n" + before + body + after + "}\n")
	folder, err := os.MkdirTemp(filepath.Join(root(), "sdk", "go", "internal"), "snippet-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	must(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(b.String()), 0o644))
	program := filepath.Join(t.TempDir(), "snippet")
	command := exec.Command("go", "build", "-o", program, folder)
	command.Dir = filepath.Join(root(), "sdk", "go")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%s", output, b.String())
	}
	return program
}

// run runs a program in the place.
func (p *place) run(program, input string) string {
	p.t.Helper()
	command := exec.Command(program)
	command.Dir = p.work
	command.Env = os.Environ()
	for name, value := range p.env {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", filepath.Base(program), err, output)
	}
	return string(output)
}

func TestTheSixLinesOfTheReadmeWorkAsPrinted(t *testing.T) {
	p := newPlace(t)
	blocks := snippets(t)
	if lines := strings.Count(strings.TrimSpace(blocks[0]), "\n") + 1; lines != 6 {
		t.Errorf("the first block has %d lines", lines)
	}
	if output := p.run(buildSnippet(t, "", blocks[0], ""), ""); len(strings.TrimSpace(output)) < 10 {
		t.Errorf("%q", output)
	}
}

func TestTheOtherBlocksOfTheReadmeCompile(t *testing.T) {
	blocks := snippets(t)
	open := "\tm, err := qwen.Open(ctx, qwen.Options{Model: \"demo\"})\n\tif err != nil { log.Fatal(err) }\n\tdefer m.Close()\n"
	buildSnippet(t, open, blocks[1], "")
	buildSnippet(t, "", blocks[2], "\tif err != nil { log.Fatal(err) }\n\tm.Close()\n")
}

func buildExample(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	command := exec.Command("go", "build", "-o", program, "./examples/"+name)
	command.Dir = filepath.Join(root(), "sdk", "go")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s", output)
	}
	return program
}

func TestTheExamplesWork(t *testing.T) {
	for name, each := range map[string]struct {
		replies []map[string]any
		input   string
		wanted  []string
	}{
		"quickstart":        {[]map[string]any{say("A small ", "project.")}, "", []string{"A small project.", "done after"}},
		"permission_dialog": {[]map[string]any{say(touch("hello.txt")), say(touch("no.txt")), say("Created.")}, "y\nn\n", []string{"touch hello.txt", "Created.", "refused: run_shell_command"}},
		"calculator_tool": {[]map[string]any{say(call("mcp__calculator__add", step{"a": 20, "b": 22})), say(call("mcp__calculator__divide", step{"a": 42, "b": 2})), say("It is 21.")}, "",
			[]string{"mcp__calculator__divide", "It is 21."}},
		"worker_pool":       {[]map[string]any{say("s"), say("s"), say("s"), say("s"), say("s"), say("s")}, "", []string{"0: s", "5: s"}},
		"resume_and_fork":   {[]map[string]any{say("ok"), say("42"), say("43")}, "", []string{"resumed: 42", "forked: 43 true"}},
		"structured_result": {[]map[string]any{say(call("structured_output", step{"verdict": "approve", "issues": []string{"none"}}))}, "", []string{`approve: ["none"]`}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, each.replies...)
			output := p.run(buildExample(t, name), each.input)
			for _, wanted := range each.wanted {
				if !strings.Contains(output, wanted) {
					t.Errorf("%q lacks %q", output, wanted)
				}
			}
		})
	}
}

func TestTheStreamingPageShowsTheAnswerAndClosingItInterruptsTheTurn(t *testing.T) {
	p := newPlace(t, say("Hello ", "page."), say("half", gate("never")), say("unused"))
	command := exec.Command(buildExample(t, "streaming_web"))
	command.Dir = p.work
	command.Env = os.Environ()
	for name, value := range p.env {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() {
		command.Process.Signal(os.Interrupt)
		command.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	must(t, err)
	address := strings.TrimSpace(line)
	get := func(ctx context.Context, path string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, nil)
		must(t, err)
		return p.client.Do(request)
	}
	page, err := get(p.ctx(), "")
	must(t, err)
	text, err := io.ReadAll(page.Body)
	must(t, err)
	page.Body.Close()
	if !strings.Contains(string(text), "EventSource") {
		t.Errorf("%s", text)
	}
	stream, err := get(p.ctx(), "stream?prompt="+url.QueryEscape("Say hello."))
	must(t, err)
	events, err := io.ReadAll(stream.Body)
	must(t, err)
	stream.Body.Close()
	if got := string(events); !strings.Contains(got, `data: "Hello "`) || !strings.Contains(got, "event: done\ndata: done") {
		t.Errorf("%s", got)
	}
	// A page that is closed.
	ctx, cancel := context.WithCancel(p.ctx())
	left, err := get(ctx, "stream?prompt=Wait")
	must(t, err)
	_, err = bufio.NewReader(left.Body).ReadString('\n')
	must(t, err)
	cancel()
	left.Body.Close()
	p.control(http.MethodGet, "gone/1")
}

func TestTheModuleZipWorksInACleanModule(t *testing.T) {
	p := newPlace(t)
	target := t.TempDir()
	pack := exec.Command(filepath.Join(root(), "sdk", "go", "dist"), target, "0.1.0")
	if output, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	module := "github.com/qwen-agent/qwen/sdk/go"
	archive, err := zip.OpenReader(filepath.Join(target, "qwen-sdk-go-0.1.0.zip"))
	must(t, err)
	defer archive.Close()
	for _, file := range archive.File {
		name, ok := strings.CutPrefix(file.Name, module+"@v0.1.0/")
		if !ok || strings.HasPrefix(name, "mcp/") || strings.HasPrefix(name, "otel/") {
			t.Errorf("%s is not a file of the module", file.Name)
		}
		source, err := file.Open()
		must(t, err)
		path := filepath.Join(p.work, "sdk", name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		written, err := os.Create(path)
		must(t, err)
		_, err = io.Copy(written, source)
		must(t, errors.Join(err, source.Close(), written.Close()))
	}
	// A host in another module, with the program embedded: nothing is searched on PATH.
	files := map[string]string{
		"go.mod":  "module host\n\ngo 1.26\n\nrequire " + module + " v0.1.0\n\nreplace " + module + " => ./sdk\n",
		"main.go": "package main\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\n\t_ \"host/qwenbin\"\n\n\tqwen \"" + module + "\"\n)\n\nfunc main() {\n\tctx := context.Background()\n\tm, err := qwen.Open(ctx, qwen.Options{Model: \"demo\"})\n\tif err != nil {\n\t\tfmt.Println(err)\n\t\treturn\n\t}\n\tdefer m.Close()\n\tr, err := m.Run(ctx, \"Hello.\")\n\tfmt.Println(r.Status, err)\n}\n",
	}
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(p.work, name), []byte(text), 0o644))
	}
	steps := [][]string{
		{"go", "run", module + "/cmd/qwen-embed", "-o", "qwenbin", shrunk(t)},
		{"go", "build", "-tags", "qwen_embed", "-o", "host", "."},
	}
	for _, each := range steps {
		command := exec.Command(each[0], each[1:]...)
		command.Dir = p.work
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", each, err, output)
		}
	}
	t.Setenv("QWEN_BIN", "")
	os.Unsetenv("QWEN_BIN")
	t.Setenv("XDG_CACHE_HOME", filepath.Join(p.home, "cache"))
	if output := p.run(filepath.Join(p.work, "host"), ""); output != "done <nil>\n" {
		t.Errorf("%q", output)
	}
}

// shrunk returns the binary without its debug information, if the machine can remove it: compressing that takes long.
func shrunk(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "qwen")
	if exec.Command("strip", "-o", path, binary()).Run() != nil {
		return binary()
	}
	return path
}
