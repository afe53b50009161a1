package io.github.qwenagent;

/** What the agent may do without asking. */
public enum PermissionMode {
    /** Reads only. */
    PLAN("plan"),
    /** Asks before anything changes. */
    DEFAULT("default"),
    /** Edits files of the workspace without asking. */
    AUTO_EDIT("auto-edit"),
    /** Asks for nothing that no rule denies. */
    YOLO("yolo");

    private final String wire;

    PermissionMode(String wire) {
        this.wire = wire;
    }

    /** Returns the mode as the protocol spells it. */
    @Override
    public String toString() {
        return wire;
    }
}
