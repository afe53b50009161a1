package io.github.qwenagent;

import org.jspecify.annotations.Nullable;

/**
 * A tool call that needs permission.
 *
 * @param sessionId the session
 * @param promptId the prompt of the turn
 * @param toolCallId the call's id
 * @param toolName the tool's name
 * @param input the arguments, a JSON object
 * @param reason why the call needs permission
 * @param blockedPath the path outside of the workspace that the call would touch; empty if that is not the reason
 * @param agentId the sub-agent that makes the call; empty for the main agent
 * @param confirmation what a user can be shown: a diff, a command, a plan; null if there is nothing special
 */
public record PermissionRequest(String sessionId, String promptId, String toolCallId, String toolName, Json input, String reason,
        String blockedPath, String agentId, Wire.@Nullable ConfirmationRecord confirmation) {}
