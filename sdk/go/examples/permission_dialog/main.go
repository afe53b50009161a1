// Permission_dialog asks the user before a tool runs.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

func main() {
	ctx := context.Background()
	input := bufio.NewReader(os.Stdin)
	m, err := qwen.Open(ctx, qwen.Options{
		Rules: qwen.Rules{Deny: []string{"Bash(rm *)"}},
		CanUseTool: func(_ context.Context, request qwen.PermissionRequest) (qwen.Decision, error) {
			fmt.Printf("%s %s\nAllow it? [y/N/a = always] ", request.ToolName, request.Input)
			line, err := input.ReadString('\n')
			if err != nil {
				return qwen.Decision{}, err
			}
			switch strings.TrimSpace(line) {
			case "y":
				return qwen.Allow(), nil
			case "a":
				return qwen.Decision{Behavior: qwen.BehaviorAllow, Rules: []string{request.ToolName}}, nil
			}
			return qwen.Deny("The user does not want that."), nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	result, err := m.Run(ctx, "Create a file named hello.txt with a greeting.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
	for _, denial := range result.Denials {
		fmt.Printf("refused: %s: %s\n", denial.ToolName, denial.Reason)
	}
}
