package qwen

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/qwen-agent/qwen/sdk/go/wire"
)

// CanUseTool decides about a tool call that needs permission. An error, a panic, a zero [Decision] and a passed
// deadline are denials. The context ends with the question: when the turn ends, when the session is closed, or at the
// deadline. It has the values of the context that the turn was started with.
type CanUseTool func(ctx context.Context, request PermissionRequest) (Decision, error)

// PermissionRequest is a tool call that needs permission.
type PermissionRequest struct {
	SessionID  string
	PromptID   string
	ToolCallID string
	ToolName   string
	// Input is the call's arguments, a JSON object.
	Input json.RawMessage
	// Reason states why the call needs permission.
	Reason string
	// BlockedPath is the path outside of the workspace that the call would touch; empty if that is not the reason.
	BlockedPath string
	// AgentID is the sub-agent that makes the call; empty for the main agent.
	AgentID string
	// Confirmation is what a user can be shown: a diff, a command, a plan; nil if there is nothing special.
	Confirmation *wire.ConfirmationRecord
}

// Behavior is the answer to a permission request.
type Behavior string

// The answers.
const (
	BehaviorAllow Behavior = "allow"
	BehaviorDeny  Behavior = "deny"
	BehaviorAsk   Behavior = "ask"
)

// Decision is the answer to a permission request. The zero value denies.
type Decision struct {
	Behavior Behavior
	// Message is what the model and the user read about a denial.
	Message string
	// UpdatedInput, if not nil, replaces the arguments of an allowed call. They are judged again.
	UpdatedInput any
	// Rules hold for the rest of the session with the decision's behavior, such as `Bash(git *)`.
	Rules []string
	// Mode, if not empty, is the permission mode from now on.
	Mode PermissionMode
	// Interrupt ends the turn with a denial.
	Interrupt bool
}

// Allow lets the call run.
func Allow() Decision { return Decision{Behavior: BehaviorAllow} }

// AllowWith lets the call run with other arguments, which must encode as a JSON object.
func AllowWith(input any) Decision { return Decision{Behavior: BehaviorAllow, UpdatedInput: input} }

// Deny refuses the call. The model reads the message.
func Deny(message string) Decision { return Decision{Behavior: BehaviorDeny, Message: message} }

// Ask leaves the decision to someone else. Where no one else can answer, the call is denied.
func Ask() Decision { return Decision{Behavior: BehaviorAsk} }

func (d Decision) wire() map[string]any {
	behavior := map[Behavior]string{BehaviorAllow: "approve", BehaviorAsk: "ask"}[d.Behavior]
	if behavior == "" {
		behavior = "deny"
	}
	answer := map[string]any{"behavior": behavior}
	if d.Message != "" {
		answer["message"] = d.Message
	}
	if d.UpdatedInput != nil {
		answer["updatedInput"] = d.UpdatedInput
	}
	if d.Interrupt {
		answer["interrupt"] = true
	}
	var updates []map[string]any
	if len(d.Rules) > 0 {
		updates = append(updates, map[string]any{"type": "addRules", "behavior": d.Behavior, "rules": d.Rules})
	}
	if d.Mode != "" {
		updates = append(updates, map[string]any{"type": "setMode", "mode": d.Mode})
	}
	if updates != nil {
		answer["updatedPermissions"] = updates
	}
	return answer
}

// Hooks are functions of the host that observe what the agent does, and may refuse, change or add to it. docs/hooks.md
// describes the events.
type Hooks struct {
	PreToolUse         []Hook
	PostToolUse        []Hook
	PostToolUseFailure []Hook
	PermissionRequest  []Hook
	UserPromptSubmit   []Hook
	SessionStart       []Hook
	SessionEnd         []Hook
	Stop               []Hook
	SubagentStart      []Hook
	SubagentStop       []Hook
	PreCompact         []Hook
	Notification       []Hook
}

// eventHooks are the hooks of one event.
type eventHooks struct {
	event string
	hooks []Hook
}

func (h *Hooks) byEvent() []eventHooks {
	return []eventHooks{
		{"PreToolUse", h.PreToolUse}, {"PostToolUse", h.PostToolUse}, {"PostToolUseFailure", h.PostToolUseFailure},
		{"PermissionRequest", h.PermissionRequest}, {"UserPromptSubmit", h.UserPromptSubmit}, {"SessionStart", h.SessionStart},
		{"SessionEnd", h.SessionEnd}, {"Stop", h.Stop}, {"SubagentStart", h.SubagentStart}, {"SubagentStop", h.SubagentStop},
		{"PreCompact", h.PreCompact}, {"Notification", h.Notification},
	}
}

func (h *Hooks) isZero() bool {
	return !slices.ContainsFunc(h.byEvent(), func(each eventHooks) bool { return each.hooks != nil })
}

// Hook is one function and what it is called for.
type Hook struct {
	// Matcher narrows the hook to tools: a name, several with '|' between them, or a regular expression. Empty
	// matches everything.
	Matcher string
	// Run is called with a context that ends with the call.
	Run func(ctx context.Context, input HookInput) (HookResult, error)
	// Timeout is the time that Run may take; [Timeouts].Callback if 0.
	Timeout time.Duration
	// BlockOnFailure makes an error, a panic or a passed time-out of Run a refusal. By default they are reported and
	// ignored.
	BlockOnFailure bool
}

// HookInput is what a hook is told.
type HookInput struct {
	// Event is the name of the field of [Hooks].
	Event      string
	SessionID  string
	PromptID   string
	ToolName   string
	ToolInput  json.RawMessage
	ToolCallID string
	// ToolResponse is the outcome of the call, after it.
	ToolResponse json.RawMessage
	// Prompt is the user's prompt, for UserPromptSubmit.
	Prompt string
	// Raw has every field as the worker sent it.
	Raw json.RawMessage
}

// HookResult is what a hook wants. The zero value lets things take their course.
type HookResult struct {
	// Block, if not empty, refuses what the hook observes; the model reads it as the reason.
	Block string
	// Stop, if not empty, ends the turn for this reason.
	Stop string
	// SystemMessage is shown to the user.
	SystemMessage string
	// Permission answers for a call before rules and callbacks do; PreToolUse only. It cannot allow what a rule denies.
	Permission       Behavior
	PermissionReason string
	// UpdatedInput, if not nil, replaces the arguments of the call, which is judged again.
	UpdatedInput any
	// UpdatedOutput, if not nil, replaces what the model reads of the call's outcome; PostToolUse only.
	UpdatedOutput any
	// AdditionalContext is added for the model.
	AdditionalContext string
}

func (r HookResult) wire(event string) map[string]any {
	answer := map[string]any{}
	if r.Block != "" {
		answer["decision"], answer["reason"] = "block", r.Block
	}
	if r.Stop != "" {
		answer["continue"], answer["stopReason"] = false, r.Stop
	}
	if r.SystemMessage != "" {
		answer["systemMessage"] = r.SystemMessage
	}
	specific := map[string]any{}
	if r.Permission != "" {
		specific["permissionDecision"] = r.Permission
		specific["permissionDecisionReason"] = r.PermissionReason
	}
	if r.UpdatedInput != nil {
		specific["updatedInput"] = r.UpdatedInput
	}
	if r.UpdatedOutput != nil {
		specific["updatedToolOutput"] = r.UpdatedOutput
	}
	if r.AdditionalContext != "" {
		specific["additionalContext"] = r.AdditionalContext
	}
	if len(specific) > 0 {
		specific["hookEventName"] = event
		answer["hookSpecificOutput"] = specific
	}
	return answer
}

func (h *Hooks) check() error {
	for _, each := range h.byEvent() {
		for _, hook := range each.hooks {
			if hook.Run == nil {
				return fmt.Errorf("qwen: a %s hook has no Run function", each.event)
			}
		}
	}
	return nil
}

// registeredHook is a hook under the id by which the worker calls it.
type registeredHook struct {
	event string
	hook  Hook
}

// register numbers the hooks and returns what `initialize` announces; nil if there are none.
func (h *Hooks) register(standard time.Duration) (map[string]registeredHook, map[string]any) {
	hooks := map[string]registeredHook{}
	var declared map[string]any
	for _, each := range h.byEvent() {
		var matchers []map[string]any
		for _, hook := range each.hooks {
			id := fmt.Sprintf("hook_%d", len(hooks))
			if hook.Timeout <= 0 {
				hook.Timeout = standard
			}
			hooks[id] = registeredHook{each.event, hook}
			matcher := map[string]any{"hookCallbackIds": []string{id}, "timeout_ms": hook.Timeout.Milliseconds()}
			if hook.Matcher != "" {
				matcher["matcher"] = hook.Matcher
			}
			if hook.BlockOnFailure {
				matcher["onFailure"] = "block"
			}
			matchers = append(matchers, matcher)
		}
		if matchers != nil {
			if declared == nil {
				declared = map[string]any{}
			}
			declared[each.event] = matchers
		}
	}
	return hooks, declared
}
