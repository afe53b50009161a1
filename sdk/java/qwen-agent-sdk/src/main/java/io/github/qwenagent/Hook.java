package io.github.qwenagent;

/**
 * Observes what the agent does, and may refuse, change or add to it. It runs on a separate thread, as {@link CanUseTool} does.
 */
@FunctionalInterface
public interface Hook {
    /**
     * Observes an event.
     *
     * @param input what happens
     * @return what the hook wants
     * @throws Exception a failure; its text is for the logger only
     */
    HookResult run(HookInput input) throws Exception;
}
