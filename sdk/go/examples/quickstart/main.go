// Quickstart runs one prompt and prints the answer as it comes.
package main

import (
	"context"
	"fmt"
	"log"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

func main() {
	ctx := context.Background()
	m, err := qwen.Open(ctx, qwen.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for message, err := range m.Stream(ctx, "Look around and tell me what this project is.") {
		if err != nil {
			log.Fatal(err)
		}
		switch message := message.(type) {
		case *qwen.Text:
			fmt.Print(message.Text)
		case *qwen.Result:
			fmt.Printf("\n%s after %v, %d tokens\n", message.Status, message.Duration, message.Usage.TotalTokens)
		}
	}
}
