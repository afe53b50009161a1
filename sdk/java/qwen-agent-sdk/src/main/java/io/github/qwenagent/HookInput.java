package io.github.qwenagent;

import io.github.qwenagent.internal.json.Fields;
import org.jspecify.annotations.Nullable;

/**
 * What a hook is told.
 *
 * @param event the event
 * @param sessionId the session
 * @param promptId the prompt of the turn
 * @param toolName the tool, for events of calls
 * @param toolCallId the call's id
 * @param toolInput the arguments of the call, or null
 * @param toolResponse the outcome of the call, after it, or null
 * @param prompt the user's prompt, for {@link HookEvent#USER_PROMPT_SUBMIT}
 * @param raw every field as the worker sent it
 */
public record HookInput(HookEvent event, String sessionId, String promptId, String toolName, String toolCallId, @Nullable Json toolInput,
        @Nullable Json toolResponse, String prompt, Json raw) {
    /** Reads the input of a hook from its request. */
    static HookInput read(HookEvent event, Fields request) {
        Fields input = request.optional("input");
        Fields told = input == null ? Fields.empty() : input;
        String promptId = request.text("prompt_id");
        String callId = told.text("tool_use_id");
        return new HookInput(event, request.text("session_id"), promptId.isEmpty() ? told.text("prompt_id") : promptId,
                told.text("tool_name"), callId.isEmpty() ? request.text("tool_use_id") : callId, Json.orNull(told.value("tool_input")),
                Json.orNull(told.value("tool_response")), told.text("prompt"), Json.of(told.map()));
    }
}
