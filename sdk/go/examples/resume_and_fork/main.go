// Resume_and_fork continues a session later and tries two ways from the same point.
package main

import (
	"context"
	"fmt"
	"log"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	m, err := qwen.Open(ctx, qwen.Options{})
	if err != nil {
		return err
	}
	defer m.Close()
	first, err := m.CreateSession(ctx, qwen.SessionOptions{})
	if err != nil {
		return err
	}
	if _, err := first.Run(ctx, "Remember the number 42."); err != nil {
		return err
	}
	id := first.ID()
	if err := first.Close(); err != nil {
		return err
	}
	resumed, err := m.ResumeSession(ctx, id, qwen.SessionOptions{})
	if err != nil {
		return err
	}
	answer, err := resumed.Run(ctx, "Which number?")
	if err != nil {
		return err
	}
	fmt.Println("resumed:", answer.Text)
	fork, err := resumed.Fork(ctx, qwen.SessionOptions{})
	if err != nil {
		return err
	}
	other, err := fork.Run(ctx, "Forget it; take 43.")
	if err != nil {
		return err
	}
	fmt.Println("forked:", other.Text, fork.ID() != resumed.ID())
	return nil
}
