package io.github.qwenagent;

import java.util.Arrays;

/** How a turn ended. */
public enum Status {
    /** The turn completed. */
    DONE("done"),
    /** An error ended the turn; the result has it. */
    ERROR("error"),
    /** The turn was interrupted by its host. */
    CANCELLED("cancelled"),
    /** The worker died, and the turn was not continued. */
    INTERRUPTED("interrupted"),
    /** The limit of model calls was reached. */
    MAX_TURNS("max_turns"),
    /** The limit of tool calls was reached. */
    MAX_TOOL_CALLS("max_tool_calls"),
    /** The time limit was reached. */
    MAX_WALL_TIME("max_wall_time"),
    /** The limit of tokens was reached. */
    MAX_TOKENS("max_tokens"),
    /** The budget was spent. */
    BUDGET("budget"),
    /** A status that this version does not know; the result's line has it. */
    OTHER("");

    private final String wire;

    Status(String wire) {
        this.wire = wire;
    }

    static Status of(String wire) {
        return Arrays.stream(values()).filter(each -> each.wire.equals(wire)).findFirst().orElse(OTHER);
    }

    /** Returns the status as the protocol spells it. */
    @Override
    public String toString() {
        return this == OTHER ? "other" : wire;
    }
}
