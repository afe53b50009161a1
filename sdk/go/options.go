package qwen

import (
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"time"
)

// PermissionMode is what the agent may do without asking.
type PermissionMode string

// The permission modes.
const (
	// ModePlan reads only.
	ModePlan PermissionMode = "plan"
	// ModeDefault asks before anything changes.
	ModeDefault PermissionMode = "default"
	// ModeAutoEdit edits files of the workspace without asking.
	ModeAutoEdit PermissionMode = "auto-edit"
	// ModeYolo asks for nothing that no rule denies.
	ModeYolo PermissionMode = "yolo"
)

// CrashPolicy is what happens to a turn whose worker dies or hangs. The hub carries it out.
type CrashPolicy string

// The crash policies.
const (
	// CrashError ends the turn as interrupted with a [*WorkerError]; the session continues with the next prompt. It is
	// the default.
	CrashError CrashPolicy = "error"
	// CrashResume continues the turn in a new worker. Finished effects are never repeated; an interrupted call is
	// reported to the model as unknown.
	CrashResume CrashPolicy = "resume"
	// CrashRetry runs the prompt again if no tool had started, and otherwise acts as CrashError.
	CrashRetry CrashPolicy = "retry"
	// CrashFork acts as CrashResume in a fork of the session, so that the original stays as it was.
	CrashFork CrashPolicy = "fork"
)

// SettingSource is a settings file that counts.
type SettingSource string

// The sources of settings.
const (
	SourceUser    SettingSource = "user"
	SourceProject SettingSource = "project"
	SourceLocal   SettingSource = "local"
)

// Options describe a manager and are the defaults of its sessions. The zero value is usable.
type Options struct {
	// Model is a model's name; `demo` and `script:FILE` need no server.
	Model string
	// Dir is the directory that sessions work in; the current one if empty.
	Dir            string
	SystemPrompt   SystemPrompt
	PermissionMode PermissionMode
	Rules          Rules
	// CanUseTool decides about calls that need permission. Without it they are denied.
	CanUseTool CanUseTool
	Hooks      Hooks
	// Tools are servers of tools: in this process ([NewToolServer]) or elsewhere ([MCPCommand], [MCPHTTP]).
	Tools []ToolServer
	// Agents are sub-agents that the model may start, by name.
	Agents   map[string]Agent
	Settings Settings
	Limits   Limits
	// Env is added to the environment of the workers.
	Env     map[string]string
	OnCrash CrashPolicy
	Worker  WorkerOptions

	// Binary is the qwen program; if empty, QWEN_BIN, then an embedded program, then PATH.
	Binary string
	Pool   Pool
	// Store keeps sessions besides the local disk.
	Store    Store
	Timeouts Timeouts
	// Logger gets structured records of the SDK, the hub and the workers; [slog.DiscardHandler] if nil.
	Logger *slog.Logger
	// Telemetry traces turns and tools. The module in the folder otel implements it with OpenTelemetry.
	Telemetry Telemetry
}

// SessionOptions describe one session. Fields that are set count over those of [Options]; maps are merged.
type SessionOptions struct {
	// ID names a new session; generated if empty.
	ID string
	// At is the prompt or checkpoint up to which [Manager.ForkSession] copies; the whole session if empty.
	At string

	Model          string
	Dir            string
	SystemPrompt   SystemPrompt
	PermissionMode PermissionMode
	Rules          Rules
	CanUseTool     CanUseTool
	Hooks          Hooks
	Tools          []ToolServer
	Agents         map[string]Agent
	Settings       Settings
	Limits         Limits
	Env            map[string]string
	OnCrash        CrashPolicy
	Worker         WorkerOptions
}

// SystemPrompt is the model's instructions. It never appears on a command line.
type SystemPrompt struct {
	// Replace takes the place of the built-in instructions.
	Replace string
	// Append is added to them.
	Append string
}

// Rules decide about tool calls, such as `Read` or `Bash(git log *)`. Deny beats ask beats allow.
type Rules struct {
	Allow []string
	Ask   []string
	Deny  []string
	// Description tells the model, in plain text, about further rules that the host enforces, such as those of CanUseTool.
	Description string
}

// Settings choose the settings files that count. By default none does.
type Settings struct {
	Sources []SettingSource
	// Values are settings of this session alone.
	Values map[string]any
	// Profile takes the place of all settings files, and of variables of the host that choose model, server or keys.
	Profile *Profile
}

// Profile is a whole set of settings. Each layer is an object, or the path of a file.
type Profile struct {
	System         any `json:"system,omitempty"`
	SystemDefaults any `json:"system_defaults,omitempty"`
	User           any `json:"user,omitempty"`
	Workspace      any `json:"workspace,omitempty"`
	// Overrides are single values by dotted key, such as `model.name`.
	Overrides map[string]any `json:"overrides,omitempty"`
}

// Limits bound a session. A turn that reaches one ends with the limit as its status. Zero is no limit.
type Limits struct {
	// MaxTurns bounds the model calls for one prompt, MaxSessionTurns those of the session.
	MaxTurns        int
	MaxSessionTurns int
	MaxToolCalls    int
	MaxWallTime     time.Duration
	MaxTokens       int64
	// MaxBudgetUSD needs a price for the model, built in or in the setting `model.prices`.
	MaxBudgetUSD float64
}

// Agent is a sub-agent that the model may start.
type Agent struct {
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	// Tools are the only tools that it may use; all of the main agent's if nil.
	Tools           []string `json:"tools,omitempty"`
	DisallowedTools []string `json:"disallowedTools,omitempty"`
	Model           string   `json:"model,omitempty"`
	Background      bool     `json:"background,omitempty"`
}

// WorkerOptions are less common options of a session.
type WorkerOptions struct {
	// Agent is how turns are worked on: `react`, `tot`, `got`, `agot`, or one of the agents.
	Agent string
	// CoreTools are the built-in tools on offer; all if nil.
	CoreTools []string
	// Dirs are further directories that tools may work in.
	Dirs []string
	// Effort is how hard the model thinks: `low`, `medium`, `high`.
	Effort string
	// Tenant separates sessions: workers and files are never shared between tenants.
	Tenant string
	// Numbered gives every line a number, so that [Session.Attach] can deliver lines again.
	Numbered bool
	// Unset names variables of the environment that workers do not get.
	Unset []string
	// Args are further flags of the worker.
	Args []string
}

// Pool bounds the hub's workers. Zero values are the hub's defaults.
type Pool struct {
	// MinWorkers are kept ready. They fit only sessions without options.
	MinWorkers int
	MaxWorkers int
	// IdleTimeout is how long a session rests before its worker is released.
	IdleTimeout          time.Duration
	MaxSessionsPerWorker int
	HealthCheckInterval  time.Duration
	// HeartbeatTimeout is how long a worker may be silent before it counts as dead.
	HeartbeatInterval time.Duration
	HeartbeatTimeout  time.Duration
	// MaxQueue bounds the prompts that wait for a worker; QueueTimeout how long they do.
	MaxQueue     int
	QueueTimeout time.Duration
}

// Timeouts are named in the errors that they cause. Zero values are the defaults.
type Timeouts struct {
	// Start bounds the time to the hub's handshake; 10 s.
	Start time.Duration
	// Request bounds control requests such as [Session.SetModel]; 60 s. A context may end them earlier.
	Request time.Duration
	// Callback bounds permission callbacks and hooks that set no time-out; 60 s. Then the answer is no.
	Callback time.Duration
	// Tool bounds calls of tools in this process; 10 min.
	Tool time.Duration
	// Close bounds [Session.Close] and [Manager.Close], the forced end included; 5 s.
	Close time.Duration
}

func (t Timeouts) withDefaults() Timeouts {
	set := func(field *time.Duration, standard time.Duration) {
		if *field <= 0 {
			*field = standard
		}
	}
	set(&t.Start, 10*time.Second)
	set(&t.Request, time.Minute)
	set(&t.Callback, time.Minute)
	set(&t.Tool, 10*time.Minute)
	set(&t.Close, 5*time.Second)
	return t
}

// sessionDefaults returns the part of the options that sessions inherit.
func (o *Options) sessionDefaults() SessionOptions {
	return SessionOptions{
		Model: o.Model, Dir: o.Dir, SystemPrompt: o.SystemPrompt, PermissionMode: o.PermissionMode, Rules: o.Rules,
		CanUseTool: o.CanUseTool, Hooks: o.Hooks, Tools: o.Tools, Agents: o.Agents, Settings: o.Settings, Limits: o.Limits,
		Env: o.Env, OnCrash: o.OnCrash, Worker: o.Worker,
	}
}

// over returns these options with the set fields of others on top.
func (s SessionOptions) over(base SessionOptions) SessionOptions {
	merged := base
	merged.ID, merged.At = s.ID, s.At
	choose(&merged.Model, s.Model)
	choose(&merged.Dir, s.Dir)
	choose(&merged.SystemPrompt, s.SystemPrompt)
	choose(&merged.PermissionMode, s.PermissionMode)
	choose(&merged.OnCrash, s.OnCrash)
	choose(&merged.Limits, s.Limits)
	if s.CanUseTool != nil {
		merged.CanUseTool = s.CanUseTool
	}
	if !s.Hooks.isZero() {
		merged.Hooks = s.Hooks
	}
	if s.Tools != nil {
		merged.Tools = s.Tools
	}
	if s.Rules.Allow != nil || s.Rules.Ask != nil || s.Rules.Deny != nil || s.Rules.Description != "" {
		merged.Rules = s.Rules
	}
	if s.Settings.Sources != nil || s.Settings.Values != nil || s.Settings.Profile != nil {
		merged.Settings = s.Settings
	}
	if !s.Worker.isZero() {
		merged.Worker = s.Worker
	}
	merged.Agents = mergeMaps(base.Agents, s.Agents)
	merged.Env = mergeMaps(base.Env, s.Env)
	return merged
}

func (w *WorkerOptions) isZero() bool {
	return w.Agent == "" && w.CoreTools == nil && w.Dirs == nil && w.Effort == "" && w.Tenant == "" && !w.Numbered && w.Unset == nil && w.Args == nil
}

func choose[T comparable](target *T, given T) {
	var zero T
	if given != zero {
		*target = given
	}
}

func mergeMaps[V any](base, over map[string]V) map[string]V {
	merged := maps.Clone(base)
	if merged == nil {
		merged = make(map[string]V, len(over))
	}
	maps.Copy(merged, over)
	return merged
}

var sessionIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// check reports options that can never work, before a process is started for them.
func (s *SessionOptions) check() error {
	if s.ID != "" && !sessionIDPattern.MatchString(s.ID) {
		return fmt.Errorf("qwen: %q is not a session id: use letters, digits, '.', '_' and '-', 128 at most", s.ID)
	}
	if !slices.Contains([]PermissionMode{"", ModePlan, ModeDefault, ModeAutoEdit, ModeYolo}, s.PermissionMode) {
		return fmt.Errorf("qwen: there is no permission mode %q; use plan, default, auto-edit or yolo", s.PermissionMode)
	}
	if !slices.Contains([]CrashPolicy{"", CrashError, CrashResume, CrashRetry, CrashFork}, s.OnCrash) {
		return fmt.Errorf("qwen: there is no crash policy %q; use error, resume, retry or fork", s.OnCrash)
	}
	for _, source := range s.Settings.Sources {
		if !slices.Contains([]SettingSource{SourceUser, SourceProject, SourceLocal}, source) {
			return fmt.Errorf("qwen: there is no settings source %q; use user, project or local", source)
		}
	}
	names := map[string]bool{}
	for _, server := range s.Tools {
		name := server.serverName()
		if names[name] {
			return fmt.Errorf("qwen: two tool servers have the name %q", name)
		}
		names[name] = true
		if err := server.check(); err != nil {
			return err
		}
	}
	return s.Hooks.check()
}
