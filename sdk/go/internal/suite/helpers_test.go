package suite

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

// roleVariable makes this test program act as another program.
const roleVariable = "QWEN_GO_SUITE_ROLE"

func TestMain(m *testing.M) {
	role, argument, _ := strings.Cut(os.Getenv(roleVariable), ":")
	switch role {
	case "":
		os.Exit(m.Run())
	case "hub":
		fakeHub(argument)
	case "host":
		host(argument)
	}
}

// fakeOptions returns options whose hub is this program in a role.
func fakeOptions(t *testing.T, role string) qwen.Options {
	t.Helper()
	checkLeaks(t)
	self, err := os.Executable()
	must(t, err)
	return qwen.Options{Binary: self, Env: map[string]string{roleVariable: "hub:" + role}}
}

func fakeSession(t *testing.T, role string) *qwen.Session {
	t.Helper()
	m, err := qwen.Open(testContext(t), fakeOptions(t, role))
	must(t, err)
	t.Cleanup(func() { m.Close() })
	s, err := m.CreateSession(testContext(t), qwen.SessionOptions{ID: "fake"})
	must(t, err)
	return s
}

// fakeHub acts as a hub that answers requests and treats prompts according to its role.
func fakeHub(role string) {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	write := func(text string) {
		fmt.Fprintln(out, text)
		out.Flush()
	}
	switch role {
	case "silent":
		time.Sleep(time.Hour)
	case "version":
		write(`{"object":"chat.completion.chunk","choices":[],"metadata":{"protocol_version":"7.2"}}`)
	case "fatal":
		write(`{"error":{"message":"the settings are broken","type":"invalid_request_error"}}`)
		os.Exit(52)
	default:
		write(`{"object":"chat.completion.chunk","choices":[],"system_fingerprint":"fake-1","metadata":{"protocol_version":"1.3","capabilities":[]}}`)
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var request struct {
			Type      string          `json:"type"`
			RequestID string          `json:"request_id"`
			PromptID  string          `json:"prompt_id"`
			Input     json.RawMessage `json:"input"`
		}
		json.Unmarshal(line, &request)
		switch {
		case request.Type == "control_request":
			write(`{"type":"control_response","request_id":"` + request.RequestID + `","response":{"subtype":"success","result":{}}}`)
		case request.Input != nil:
			answerPrompt(role, request.PromptID, write)
		}
	}
}

func answerPrompt(role, promptID string, write func(string)) {
	head := `"session_id":"fake","prompt_id":"` + promptID + `"`
	piece := func(text string) {
		write(`{"object":"chat.completion.chunk",` + head + `,"choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}`)
	}
	switch role {
	case "long":
		piece("before ")
		piece(strings.Repeat("x", 60_000_000))
	case "strange":
		piece("a")
		write(`this is not JSON`)
		write(`{"type":"x-qwen-hologram",` + head + `,"depth":3}`)
		write(`{"type":"x-qwen-thought",` + head + `,"subject":7,"description":[]}`)
		write(`{"type":"x-qwen-thought",` + head + `,"subject":"s","description":"d","mood":"calm"}`)
		write(`{"object":"chat.completion.chunk",` + head + `,"choices":[{"index":0,"delta":{"content":"b","extra":"c"},"finish_reason":null}],"more":true}`)
		write(`[]`)
		write(``)
		piece("d")
	case "flood":
		flood := strings.Repeat("complaint\n", 10_000)
		for range 40 {
			os.Stderr.WriteString(flood)
		}
		piece("after the flood")
	case "die":
		piece("almost")
		os.Stderr.WriteString(strings.Repeat("noise\n", 100_000) + "out of cheese\n")
		os.Exit(3)
	}
	write(`{"object":"chat.completion.chunk",` + head + `,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},` +
		`"metadata":{"turn":{"status":"done","duration_ms":1,"model_calls":1,"tool_calls":0,"permission_denials":[],"usage_by_model":{}}}}`)
}

// host is a program that uses the SDK: it starts a turn that does not end, prints the hub's process id, and then ends
// as its argument asks.
func host(ending string) {
	ctx := context.Background()
	m, err := qwen.Open(ctx, qwen.Options{Dir: os.Getenv("SUITE_WORK")})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s, err := m.CreateSession(ctx, qwen.SessionOptions{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for message := range s.Stream(ctx, "Work.") {
		if _, ok := message.(*qwen.Text); ok {
			fmt.Println(m.PID())
			if ending == "exit" {
				os.Exit(0)
			}
			if ending == "return" {
				return
			}
		}
	}
}
