package io.github.qwenagent.internal.json;

/** Text that is not valid JSON, or a value that does not fit its type. */
public final class JsonException extends Exception {
    private static final long serialVersionUID = 1;

    /** Creates an exception with a message for users. */
    public JsonException(String message) {
        super(message);
    }
}
