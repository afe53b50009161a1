package io.github.qwenagent;

/** The failure of a tool. Its message is given to the model; that of any other exception is not. */
public final class ToolException extends Exception {
    private static final long serialVersionUID = 1;

    /**
     * Creates a failure.
     *
     * @param message what the model reads
     */
    public ToolException(String message) {
        super(message);
    }
}
