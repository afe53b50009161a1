package io.github.qwenagent;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The answer to a permission request. It is immutable. */
public final class Decision {
    private final String behavior;
    private final String message;
    private final @Nullable Object updatedInput;
    private final List<String> rules;
    private final @Nullable PermissionMode mode;
    private final boolean isInterrupting;

    private Decision(String behavior, String message, @Nullable Object updatedInput, List<String> rules, @Nullable PermissionMode mode,
            boolean isInterrupting) {
        this.behavior = behavior;
        this.message = message;
        this.updatedInput = updatedInput;
        this.rules = rules;
        this.mode = mode;
        this.isInterrupting = isInterrupting;
    }

    private static Decision of(String behavior, String message) {
        return new Decision(behavior, message, null, List.of(), null, false);
    }

    /**
     * Lets the call run.
     *
     * @return the decision
     */
    public static Decision allow() {
        return of("allow", "");
    }

    /**
     * Lets the call run with other arguments, which are judged again.
     *
     * @param input a map or a record
     * @return the decision
     */
    public static Decision allowWith(Object input) {
        return new Decision("allow", "", Json.of(input), List.of(), null, false);
    }

    /**
     * Refuses the call.
     *
     * @param message what the model and the user read
     * @return the decision
     */
    public static Decision deny(String message) {
        return of("deny", message);
    }

    /**
     * Leaves the decision to someone else. Where no one else can answer, the call is denied.
     *
     * @return the decision
     */
    public static Decision ask() {
        return of("ask", "");
    }

    /**
     * Applies the decision to further calls of the session.
     *
     * @param added rules such as `Bash(git *)`
     * @return the decision with the rules
     */
    public Decision forRules(String... added) {
        return new Decision(behavior, message, updatedInput, List.of(added), mode, isInterrupting);
    }

    /**
     * Changes the permission mode.
     *
     * @param mode the mode from now on
     * @return the decision with the mode
     */
    public Decision withMode(PermissionMode mode) {
        return new Decision(behavior, message, updatedInput, rules, mode, isInterrupting);
    }

    /**
     * Ends the turn with the denial.
     *
     * @return the decision that ends the turn
     */
    public Decision andInterrupt() {
        return new Decision(behavior, message, updatedInput, rules, mode, true);
    }

    Map<String, @Nullable Object> wire() {
        Map<String, @Nullable Object> answer = new LinkedHashMap<>();
        answer.put("behavior", behavior.equals("allow") ? "approve" : behavior);
        if (!message.isEmpty()) {
            answer.put("message", message);
        }
        if (updatedInput != null) {
            answer.put("updatedInput", updatedInput);
        }
        if (isInterrupting) {
            answer.put("interrupt", true);
        }
        List<Map<String, Object>> updates = new ArrayList<>();
        if (!rules.isEmpty()) {
            updates.add(Map.of("type", "addRules", "behavior", behavior, "rules", rules));
        }
        if (mode != null) {
            updates.add(Map.of("type", "setMode", "mode", mode.toString()));
        }
        if (!updates.isEmpty()) {
            answer.put("updatedPermissions", updates);
        }
        return answer;
    }
}
