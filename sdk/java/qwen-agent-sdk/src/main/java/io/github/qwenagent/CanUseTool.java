package io.github.qwenagent;

/**
 * Decides about tool calls that need permission. It runs on a separate thread, which is virtual where the JDK has virtual
 * threads and is interrupted when the answer is no longer needed: when the turn ends, when the session is closed, or at
 * {@link Timeouts#callback}. An exception, null and a passed time-out are denials.
 */
@FunctionalInterface
public interface CanUseTool {
    /**
     * Decides about a call.
     *
     * @param request the call
     * @return the decision
     * @throws Exception for a denial; its text is for the logger only
     */
    Decision decide(PermissionRequest request) throws Exception;
}
