package qwen

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/qwen-agent/qwen/sdk/go/internal/hub"
)

// hubArguments returns the hub's arguments, and a configuration file for what has no flag; empty if there is none.
func hubArguments(pool Pool) (args []string, config string, err error) {
	args = []string{"hub", "--dialect", "qwen", "--output-format", "stream-chunk-json", "--log-format", "json"}
	// Spares have no options of a session and fit none of ours, so there are none unless they are asked for.
	args = append(args, "--min-workers", strconv.Itoa(pool.MinWorkers))
	add := func(flag string, number int) {
		if number > 0 {
			args = append(args, flag, strconv.Itoa(number))
		}
	}
	add("--max-workers", pool.MaxWorkers)
	add("--max-sessions-per-worker", pool.MaxSessionsPerWorker)
	further := map[string]any{}
	addTime := func(key string, value time.Duration) {
		if value > 0 {
			further[key] = value.Seconds()
		}
	}
	addTime("idle_timeout", pool.IdleTimeout)
	addTime("health_check_interval", pool.HealthCheckInterval)
	addTime("heartbeat_interval", pool.HeartbeatInterval)
	addTime("heartbeat_timeout", pool.HeartbeatTimeout)
	addTime("queue_timeout", pool.QueueTimeout)
	if pool.MaxQueue > 0 {
		further["max_queue"] = pool.MaxQueue
		further["max_queue_per_tenant"] = pool.MaxQueue
	}
	if len(further) == 0 {
		return args, "", nil
	}
	config, err = writePrivate("", "hub.json", map[string]any{"worker_pool": further})
	return append(args, "--config", config), config, err
}

// writePrivate writes a JSON file that only this user can read, into the folder or a new one below the temporary
// directory.
func writePrivate(folder, name string, value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	if folder == "" {
		if folder, err = os.MkdirTemp("", "qwen-sdk-"); err != nil {
			return "", err
		}
	}
	path := filepath.Join(folder, name)
	return path, os.WriteFile(path, data, 0o600)
}

func environment(env map[string]string) []string {
	all := os.Environ()
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	return all
}

// startHub starts the manager's hub.
func startHub(ctx context.Context, options *Options) (*hub.Conn, error) {
	path, err := FindBinary(options.Binary)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(options.Dir); options.Dir != "" && (err != nil || !info.IsDir()) {
		return nil, fmt.Errorf("qwen: Options.Dir is not a directory that can be used: %q", options.Dir)
	}
	args, config, err := hubArguments(options.Pool)
	if config != "" {
		// The hub has read it by its handshake.
		defer os.RemoveAll(filepath.Dir(config))
	}
	if err != nil {
		return nil, err
	}
	conn, err := hub.Start(ctx, hub.Config{
		Path: path, Args: args, Env: environment(options.Env), Dir: options.Dir,
		StartTimeout: options.Timeouts.Start, Logger: options.Logger,
	})
	return conn, publicError(err)
}

// openFields returns the fields of the request that opens a session. Settings with values go into a file in `folder`.
func openFields(options *SessionOptions, forkFrom string) (fields map[string]any, folder string, err error) {
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, "", err
	}
	args, folder, err := workerArguments(options)
	if err != nil {
		return nil, folder, err
	}
	env := map[string]any{}
	for _, name := range options.Worker.Unset {
		env[name] = nil
	}
	for name, value := range options.Env {
		env[name] = value
	}
	fields = map[string]any{"cwd": dir, "args": args, "env": env}
	if options.Settings.Profile != nil {
		fields["settings_profile"] = options.Settings.Profile
	}
	if forkFrom != "" {
		fields["fork_from"] = forkFrom
	}
	if options.Worker.Tenant != "" {
		fields["tenant"] = options.Worker.Tenant
	}
	if options.Worker.Numbered {
		fields["sequence"] = true
	}
	if options.OnCrash != "" {
		fields["on_crash"] = options.OnCrash
	}
	return fields, folder, nil
}

// workerArguments returns the worker's flags. Prompts, instructions and values of settings are never among them.
func workerArguments(options *SessionOptions) (args []string, folder string, err error) {
	args = []string{}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag+"="+value)
		}
	}
	addNumber := func(flag string, value float64) {
		if value > 0 {
			add(flag, strconv.FormatFloat(value, 'f', -1, 64))
		}
	}
	if options.Settings.Profile == nil {
		sources := make([]string, len(options.Settings.Sources))
		for i, source := range options.Settings.Sources {
			sources[i] = string(source)
		}
		args = append(args, "--setting-sources="+strings.Join(sources, ","))
	}
	worker, limits := &options.Worker, &options.Limits
	add("--model", options.Model)
	add("--approval-mode", string(options.PermissionMode))
	add("--agent", worker.Agent)
	add("--effort", worker.Effort)
	add("--core-tools", strings.Join(worker.CoreTools, ","))
	for _, dir := range worker.Dirs {
		// One flag each: a path may contain a comma.
		add("--include-directories", dir)
	}
	addNumber("--max-turns", float64(limits.MaxTurns))
	addNumber("--max-session-turns", float64(limits.MaxSessionTurns))
	addNumber("--max-tool-calls", float64(limits.MaxToolCalls))
	addNumber("--max-wall-time", limits.MaxWallTime.Seconds())
	addNumber("--max-tokens-total", float64(limits.MaxTokens))
	addNumber("--max-budget-usd", limits.MaxBudgetUSD)
	settings, err := settingsWithRules(options)
	if err != nil {
		return nil, "", err
	}
	switch {
	case len(options.Settings.Values) > 0:
		path, err := writePrivate("", "settings.json", settings)
		if err != nil {
			return nil, "", err
		}
		folder = filepath.Dir(path)
		add("--settings", path)
	case settings != nil:
		text, err := json.Marshal(settings)
		if err != nil {
			return nil, "", err
		}
		add("--settings", string(text))
	}
	return append(args, worker.Args...), folder, nil
}

// settingsWithRules returns the session's settings with its rules added; nil if there are neither.
func settingsWithRules(options *SessionOptions) (map[string]any, error) {
	rules := &options.Rules
	lists := map[string][]string{"allow": rules.Allow, "ask": rules.Ask, "deny": rules.Deny}
	settings := mergeMaps(options.Settings.Values, nil)
	if len(rules.Allow)+len(rules.Ask)+len(rules.Deny) == 0 {
		if len(settings) == 0 {
			return nil, nil
		}
		return settings, nil
	}
	// The values may hold the permissions in any type that encodes as an object.
	permissions := map[string]any{}
	if given, ok := settings["permissions"]; ok {
		text, err := json.Marshal(given)
		if err == nil {
			err = json.Unmarshal(text, &permissions)
		}
		if err != nil {
			return nil, fmt.Errorf("qwen: the setting permissions is not an object: %w", err)
		}
	}
	for name, added := range lists {
		own, _ := permissions[name].([]any)
		for _, rule := range added {
			own = append(own, rule)
		}
		if own != nil {
			permissions[name] = own
		}
	}
	settings["permissions"] = permissions
	return settings, nil
}

// forkAt copies a session up to a point into a new one, which the hub then opens.
func forkAt(ctx context.Context, binary, source, point, target string, options *SessionOptions) error {
	path, err := FindBinary(binary)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, path, "sessions", "fork", source, "--at", point, "--session-id", target)
	command.Env, command.Dir = environment(options.Env), options.Dir
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &RequestError{Request: "fork", Code: "fork_failed", Message: strings.TrimSpace(string(output))}
	}
	return nil
}
