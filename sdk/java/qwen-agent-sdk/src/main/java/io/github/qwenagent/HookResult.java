package io.github.qwenagent;

import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What a hook wants. It is immutable; the methods return copies. */
public final class HookResult {
    private static final HookResult PROCEED = new HookResult(Map.of(), Map.of());

    private final Map<String, Object> fields;
    /** The fields that depend on the event. */
    private final Map<String, Object> specific;

    private HookResult(Map<String, Object> fields, Map<String, Object> specific) {
        this.fields = fields;
        this.specific = specific;
    }

    /**
     * Lets things take their course.
     *
     * @return the result
     */
    public static HookResult proceed() {
        return PROCEED;
    }

    /**
     * Refuses what the hook observes.
     *
     * @param reason what the model reads
     * @return the result
     */
    public static HookResult block(String reason) {
        return PROCEED.with("decision", "block").with("reason", reason);
    }

    /**
     * Ends the turn.
     *
     * @param reason what the user reads
     * @return the result
     */
    public static HookResult stop(String reason) {
        return PROCEED.with("continue", false).with("stopReason", reason);
    }

    private static Map<String, Object> added(Map<String, Object> map, String name, Object value) {
        Map<String, Object> copy = new LinkedHashMap<>(map);
        copy.put(name, value);
        return copy;
    }

    private HookResult with(String name, Object value) {
        return new HookResult(added(fields, name, value), specific);
    }

    private HookResult withSpecific(String name, Object value) {
        return new HookResult(fields, added(specific, name, value));
    }

    /**
     * Shows a message to the user.
     *
     * @param message the message
     * @return the result with the message
     */
    public HookResult withSystemMessage(String message) {
        return with("systemMessage", message);
    }

    /**
     * Answers for a call before rules and callbacks do; {@link HookEvent#PRE_TOOL_USE} only. It cannot allow what a rule denies.
     *
     * @param isAllowed whether the call may run
     * @param reason the reason
     * @return the result with the answer
     */
    public HookResult withPermission(boolean isAllowed, String reason) {
        return withSpecific("permissionDecision", isAllowed ? "allow" : "deny").withSpecific("permissionDecisionReason", reason);
    }

    /**
     * Replaces the arguments of the call, which is judged again.
     *
     * @param input a map or a record
     * @return the result with the arguments
     */
    public HookResult withUpdatedInput(Object input) {
        return withSpecific("updatedInput", Json.of(input));
    }

    /**
     * Replaces what the model reads of the call's outcome; {@link HookEvent#POST_TOOL_USE} only.
     *
     * @param output any value with a JSON form
     * @return the result with the outcome
     */
    public HookResult withUpdatedOutput(Object output) {
        return withSpecific("updatedToolOutput", Json.of(output));
    }

    /**
     * Adds a text for the model.
     *
     * @param context the text
     * @return the result with the text
     */
    public HookResult withAdditionalContext(String context) {
        return withSpecific("additionalContext", context);
    }

    Map<String, @Nullable Object> wire(HookEvent event) {
        Map<String, @Nullable Object> answer = new LinkedHashMap<>(fields);
        if (!specific.isEmpty()) {
            answer.put("hookSpecificOutput", added(specific, "hookEventName", event.toString()));
        }
        return answer;
    }
}
