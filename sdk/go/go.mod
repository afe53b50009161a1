module github.com/qwen-agent/qwen/sdk/go

go 1.26
