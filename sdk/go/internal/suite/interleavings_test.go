package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

func TestEveryResultBelongsToItsPromptAndNothingRunsAfterClose(t *testing.T) {
	replies := []map[string]any{}
	for i := range 6 {
		reply := say(fmt.Sprintf("answer %d", i))
		if i == 0 {
			reply = say("answer 0", gate("first"))
		}
		reply["match"] = fmt.Sprintf("prompt %d.", i)
		replies = append(replies, reply)
	}
	p := newPlace(t, replies...)
	s := p.session(p.options())
	results := make([]*qwen.Result, 6)
	errs := make([]error, 6)
	cancelled, cancel := context.WithCancel(p.ctx())
	first := make(chan struct{})
	var group sync.WaitGroup
	run := func(ctx context.Context, i int) {
		group.Go(func() { results[i], errs[i] = s.Run(ctx, fmt.Sprintf("prompt %d.", i)) })
	}
	group.Go(func() {
		for message, err := range s.Stream(p.ctx(), "prompt 0.") {
			if _, ok := message.(*qwen.Text); ok {
				close(first)
			}
			if result, ok := message.(*qwen.Result); ok {
				results[0] = result
			}
			errs[0] = err
		}
	})
	<-first
	// Prompts that wait, one of which is cancelled before its turn.
	run(p.ctx(), 1)
	run(cancelled, 2)
	run(p.ctx(), 3)
	must(t, s.SetPermissionMode(p.ctx(), qwen.ModeDefault))
	cancel()
	p.open("first")
	group.Wait()
	for _, i := range []int{0, 1, 3} {
		if errs[i] != nil || results[i] == nil || results[i].Text != fmt.Sprintf("answer %d", i) {
			t.Errorf("prompt %d: %+v, %v", i, results[i], errs[i])
		}
	}
	if !errors.Is(errs[2], context.Canceled) {
		t.Errorf("the cancelled prompt: %+v, %v", results[2], errs[2])
	}
	must(t, s.Close())
	if _, err := s.Run(p.ctx(), "prompt 5."); !errors.Is(err, qwen.ErrClosed) {
		t.Error(err)
	}
	asked := p.requests()
	isAsked := slices.ContainsFunc(asked, func(request modelRequest) bool {
		return slices.ContainsFunc(request.Messages, func(message modelMessage) bool { return strings.Contains(message.text(), "prompt 5.") })
	})
	if isAsked {
		t.Error("a prompt reached the model after Close")
	}
}
