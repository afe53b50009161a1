// Calculator_tool makes functions of this program tools of the agent.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

type operands struct {
	A float64 `json:"a" jsonschema:"The first number"`
	B float64 `json:"b" jsonschema:"The second number"`
}

func main() {
	ctx := context.Background()
	calculator := qwen.NewToolServer("calculator",
		qwen.Tool("add", "Adds two numbers", func(_ context.Context, in operands) (float64, error) { return in.A + in.B, nil }),
		qwen.Tool("divide", "Divides two numbers", func(_ context.Context, in operands) (float64, error) {
			if in.B == 0 {
				return 0, errors.New("a number cannot be divided by zero")
			}
			return in.A / in.B, nil
		}),
	)
	m, err := qwen.Open(ctx, qwen.Options{
		Tools: []qwen.ToolServer{calculator},
		Rules: qwen.Rules{Allow: []string{"mcp__calculator__add", "mcp__calculator__divide"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	result, err := m.Run(ctx, "What is (20 + 22) / 2? Use the calculator.")
	if err != nil {
		log.Fatal(err)
	}
	for _, call := range result.ToolCalls {
		fmt.Printf("%s %s\n", call.Name, call.Arguments)
	}
	fmt.Println(result.Text)
}
