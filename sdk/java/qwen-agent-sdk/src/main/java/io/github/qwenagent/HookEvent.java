package io.github.qwenagent;

/** What a hook observes. docs/hooks.md describes the events. */
public enum HookEvent {
    /** Before a tool call is judged. */
    PRE_TOOL_USE("PreToolUse"),
    /** After a tool call. */
    POST_TOOL_USE("PostToolUse"),
    /** After a tool call that failed. */
    POST_TOOL_USE_FAILURE("PostToolUseFailure"),
    /** Before a permission is asked for. */
    PERMISSION_REQUEST("PermissionRequest"),
    /** Before a prompt is worked on. */
    USER_PROMPT_SUBMIT("UserPromptSubmit"),
    /** When a session begins. */
    SESSION_START("SessionStart"),
    /** When a session ends. */
    SESSION_END("SessionEnd"),
    /** When the agent is done with a turn. */
    STOP("Stop"),
    /** When a sub-agent starts. */
    SUBAGENT_START("SubagentStart"),
    /** When a sub-agent is done. */
    SUBAGENT_STOP("SubagentStop"),
    /** Before the conversation is compacted. */
    PRE_COMPACT("PreCompact"),
    /** When the user should be told something. */
    NOTIFICATION("Notification");

    private final String wire;

    HookEvent(String wire) {
        this.wire = wire;
    }

    /** Returns the event as the protocol spells it. */
    @Override
    public String toString() {
        return wire;
    }
}
