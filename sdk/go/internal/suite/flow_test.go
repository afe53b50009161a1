package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

func TestAReaderSlowerThanTheStreamLosesNothingStopsNoOtherAndMemoryStaysBounded(t *testing.T) {
	// Far more than the SDK and the hub hold, and a pause that is longer than the hub waits for a silent worker.
	const pieces, pause = 60_000, 5 * time.Second
	const piece = "a piece of text that is long enough to count "
	p := newPlace(t, say("little"))
	script := filepath.Join(p.home, "flood.json")
	must(t, os.WriteFile(script, fmt.Appendf(nil, `[[{"repeat":%d,"text":%q}]]`, pieces, piece), 0o600))
	options := p.options()
	options.Pool = qwen.Pool{HeartbeatInterval: 500 * time.Millisecond, HeartbeatTimeout: 3 * time.Second}
	m := p.manager(options)
	slow, err := m.CreateSession(p.ctx(), qwen.SessionOptions{Model: "script:" + script})
	must(t, err)
	other, err := m.CreateSession(p.ctx(), qwen.SessionOptions{})
	must(t, err)
	before := memoryInUse()
	var most uint64
	length, count := 0, 0
	for message, err := range slow.Stream(p.ctx(), "Much.") {
		must(t, err)
		text, ok := message.(*qwen.Text)
		if !ok {
			continue
		}
		length += len(text.Text)
		if count++; count == 1 {
			// Reads nothing while another session works.
			result, err := other.Run(p.ctx(), "Little.")
			if err != nil || result.Text != "little" {
				t.Errorf("%+v, %v", result, err)
			}
			time.Sleep(pause)
			most = memoryInUse() - before
		}
		if count == pieces/2 {
			// A request of the same session is answered although its messages wait.
			must(t, slow.SetPermissionMode(p.ctx(), qwen.ModePlan))
		}
	}
	if want := pieces * len(piece); length != want {
		t.Errorf("%d characters and not %d", length, want)
	}
	if limit := uint64(12 << 20); most > limit {
		t.Errorf("%d bytes were in memory while no one read", most)
	}
}
