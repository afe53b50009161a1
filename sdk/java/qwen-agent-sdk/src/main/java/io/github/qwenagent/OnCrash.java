package io.github.qwenagent;

import java.util.Locale;

/** What the hub does with a turn whose worker dies or hangs. */
public enum OnCrash {
    /**
     * Ends the turn as interrupted with {@link QwenException.WorkerExited}; the session continues with the next prompt. It is
     * the default.
     */
    ERROR,
    /** Continues the turn in a new worker. Finished effects are never repeated. */
    RESUME,
    /** Runs the prompt again if no tool had started, and otherwise acts as {@link #ERROR}. */
    RETRY,
    /** Acts as {@link #RESUME} in a fork of the session, so that the original stays as it was. */
    FORK;

    /** Returns the policy as the protocol spells it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
