// Structured_result asks for an answer that is a value of a Go type.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

type review struct {
	Verdict string   `json:"verdict" enum:"approve,reject" jsonschema:"The decision"`
	Issues  []string `json:"issues" jsonschema:"What should change"`
	Score   int      `json:"score,omitempty"`
}

func main() {
	ctx := context.Background()
	m, err := qwen.Open(ctx, qwen.Options{PermissionMode: qwen.ModePlan})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	verdict, result, err := qwen.RunAs[review](ctx, m, "Review the last commit.")
	if errors.Is(err, qwen.ErrStructuredOutput) {
		log.Fatalf("no review: %v", err)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %q (%d tokens)\n", verdict.Verdict, verdict.Issues, result.Usage.TotalTokens)
}
