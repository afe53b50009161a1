// Bench measures what the SDK itself costs: processor time for each message of a long stream, the time from nothing to
// the first message, and memory for each open session.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	qwen "github.com/qwen-agent/qwen/sdk/go"
)

const (
	chunks   = 20_000
	coldRuns = 20
	sessions = 200
)

func main() {
	folder, err := os.MkdirTemp("", "qwen-bench-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := measure(folder); err != nil {
		log.Fatal(err)
	}
}

func measure(folder string) error {
	script := filepath.Join(folder, "script.json")
	text := fmt.Appendf(nil, `[[{"repeat":%d,"text":"piece "}]]`, chunks)
	if err := os.WriteFile(script, text, 0o600); err != nil {
		return err
	}
	options := qwen.Options{Dir: folder, Model: "demo", Env: map[string]string{"QWEN_HOME": filepath.Join(folder, "home")}}
	perEvent, err := processorTime(options, script)
	if err != nil {
		return err
	}
	first, err := coldStart(options)
	if err != nil {
		return err
	}
	memory, err := memoryPerSession(options)
	if err != nil {
		return err
	}
	fmt.Println("\nGo SDK")
	row := func(what, measured, target string) { fmt.Printf("  %-52s %12s   %s\n", what, measured, target) }
	row(fmt.Sprintf("processor time of the host per event, %d chunks", chunks), fmt.Sprintf("%.2f µs", float64(perEvent.Nanoseconds())/1000), "")
	row("cold Open and Run to the first message, median", first.Round(100*time.Microsecond).String(), "target ≤ 15 ms")
	row("memory of the host per open session", fmt.Sprintf("%.1f KiB", memory/1024), "")
	return nil
}

// processorTime returns what this process uses for each message of a stream.
func processorTime(options qwen.Options, script string) (time.Duration, error) {
	ctx := context.Background()
	m, err := qwen.Open(ctx, options)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	s, err := m.CreateSession(ctx, qwen.SessionOptions{Model: "script:" + script})
	if err != nil {
		return 0, err
	}
	before := used()
	count := 0
	for _, err := range s.Stream(ctx, "Go.") {
		if err != nil {
			return 0, err
		}
		count++
	}
	if count < chunks {
		return 0, fmt.Errorf("%d messages of %d chunks", count, chunks)
	}
	return (used() - before) / time.Duration(count), nil
}

// used returns the processor time of this process.
func used() time.Duration {
	var usage syscall.Rusage
	// It fails only for a wrong argument.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// coldStart returns the median time from Open to the first message.
func coldStart(options qwen.Options) (time.Duration, error) {
	ctx := context.Background()
	var times []time.Duration
	for range coldRuns {
		started := time.Now()
		m, err := qwen.Open(ctx, options)
		if err != nil {
			return 0, err
		}
		for _, err := range m.Stream(ctx, "Hello.") {
			if err != nil {
				return 0, err
			}
			times = append(times, time.Since(started))
			break
		}
		if err := m.Close(); err != nil {
			return 0, err
		}
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// memoryPerSession returns the memory of this process for each open session.
func memoryPerSession(options qwen.Options) (float64, error) {
	ctx := context.Background()
	m, err := qwen.Open(ctx, options)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	inUse := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapInuse + stats.StackInuse
	}
	before := inUse()
	opened := make([]*qwen.Session, 0, sessions)
	for range sessions {
		s, err := m.CreateSession(ctx, qwen.SessionOptions{})
		if err != nil {
			return 0, err
		}
		opened = append(opened, s)
	}
	after := inUse()
	runtime.KeepAlive(opened)
	return float64(after-min(before, after)) / sessions, nil
}
