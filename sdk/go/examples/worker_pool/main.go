// Worker_pool runs many sessions on few workers.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

func main() {
	ctx := context.Background()
	m, err := qwen.Open(ctx, qwen.Options{Pool: qwen.Pool{MaxWorkers: 2}, OnCrash: qwen.CrashRetry})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			result, err := runPatiently(ctx, m, fmt.Sprintf("Summarize part %d.", i))
			if err != nil {
				log.Print(err)
				return
			}
			fmt.Printf("%d: %s\n", i, result.Text)
		})
	}
	group.Wait()
}

// runPatiently tries again while the pool is overloaded.
func runPatiently(ctx context.Context, m *qwen.Manager, prompt string) (*qwen.Result, error) {
	for {
		result, err := m.Run(ctx, prompt)
		var refused *qwen.TurnError
		if !errors.Is(err, qwen.ErrOverloaded) || !errors.As(err, &refused) {
			return result, err
		}
		select {
		case <-time.After(refused.RetryAfter):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
