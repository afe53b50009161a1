package io.github.qwenagent;

import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The failures of the SDK. They are unchecked, and a switch over the subclasses is exhaustive. */
public abstract sealed class QwenException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private QwenException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }

    /** There is no qwen program. The message lists the places that were searched. */
    public static final class BinaryNotFound extends QwenException {
        private static final long serialVersionUID = 1;

        /**
         * Creates the exception.
         *
         * @param message what was searched, and what to do
         * @param cause the cause, or null
         */
        public BinaryNotFound(String message, @Nullable Throwable cause) {
            super(message, cause);
        }
    }

    /** The program is not a qwen hub, or it uses another version of the protocol. */
    public static final class Protocol extends QwenException {
        private static final long serialVersionUID = 1;

        /**
         * Creates the exception.
         *
         * @param message what was wrong
         * @param cause the cause, or null
         */
        public Protocol(String message, @Nullable Throwable cause) {
            super(message, cause);
        }
    }

    /**
     * A worker or the hub has ended by itself. After the end of a worker the session continues with the next prompt; after the
     * end of the hub the manager must be opened again.
     */
    public static final class WorkerExited extends QwenException {
        private static final long serialVersionUID = 1;
        /** True if the hub itself has ended. */
        private final boolean isHub;
        /** The exit code, or -1. */
        private final int exitCode;
        /** The number of the signal, or 0. */
        private final int signal;
        /** The end of standard error. */
        private final String stderr;
        private final transient @Nullable Result lastResult;

        /**
         * Creates the exception.
         *
         * @param message how the process ended
         * @param isHub true if the hub itself has ended
         * @param exitCode the exit code; -1 if a signal ended the process or the code is unknown
         * @param signal the number of the signal; 0 if none ended the process
         * @param stderr the end of what it wrote to standard error
         * @param lastResult the session's last result before, or null
         */
        public WorkerExited(String message, boolean isHub, int exitCode, int signal, String stderr, @Nullable Result lastResult) {
            super(message + lastLine(stderr), null);
            this.isHub = isHub;
            this.exitCode = exitCode;
            this.signal = signal;
            this.stderr = stderr;
            this.lastResult = lastResult;
        }

        private static String lastLine(String stderr) {
            String text = stderr.strip();
            return text.isEmpty() ? "" : "; its standard error ended with: " + text.substring(text.lastIndexOf('\n') + 1);
        }

        /**
         * Returns whether the hub itself has ended, and with it every session.
         *
         * @return true for the hub, false for a worker
         */
        public boolean isHub() {
            return isHub;
        }

        /**
         * Returns the exit code of the process.
         *
         * @return the exit code; -1 if a signal ended the process or the code is unknown
         */
        public int exitCode() {
            return exitCode;
        }

        /**
         * Returns the signal that ended the process.
         *
         * @return the number of the signal; 0 if none did
         */
        public int signal() {
            return signal;
        }

        /**
         * Returns the end of what the process wrote to standard error.
         *
         * @return the text
         */
        public String stderr() {
            return stderr;
        }

        /**
         * Returns the session's last result before the end.
         *
         * @return the result; empty if there is none
         */
        public Optional<Result> lastResult() {
            return Optional.ofNullable(lastResult);
        }
    }

    /** A turn did not complete: an error of the model, a limit, or an interruption. */
    public static final class TurnFailed extends QwenException {
        private static final long serialVersionUID = 1;
        /** A stable error code. */
        private final String code;
        /** The class of the error. */
        private final String type;
        /** True if another try may succeed. */
        private final boolean isRetryable;
        private final transient @Nullable Result result;

        /**
         * Creates the exception.
         *
         * @param message what happened
         * @param code a stable error code, or an empty text
         * @param type the class of the error, such as `api_error`, or an empty text
         * @param isRetryable true if the same prompt may succeed later
         * @param result the result of the turn; null for a prompt that was refused before its turn began
         */
        public TurnFailed(String message, String code, String type, boolean isRetryable, @Nullable Result result) {
            super(message, null);
            this.code = code;
            this.type = type;
            this.isRetryable = isRetryable;
            this.result = result;
        }

        /**
         * Returns a stable error code, such as `duplicate_prompt_id`.
         *
         * @return the code; empty if the status is the only cause
         */
        public String code() {
            return code;
        }

        /**
         * Returns the class of the error, such as `api_error`.
         *
         * @return the type, or an empty text
         */
        public String type() {
            return type;
        }

        /**
         * Returns whether the same prompt may succeed later.
         *
         * @return true if it may
         */
        public boolean isRetryable() {
            return isRetryable;
        }

        /**
         * Returns what there is of the turn, its status and usage among it.
         *
         * @return the result; empty for a prompt that was refused before its turn began
         */
        public Optional<Result> result() {
            return Optional.ofNullable(result);
        }
    }

    /** The hub refused a prompt for now. */
    public static final class Overloaded extends QwenException {
        private static final long serialVersionUID = 1;
        /** A stable error code. */
        private final String code;
        /** The time to wait. */
        private final Duration retryAfter;

        /**
         * Creates the exception.
         *
         * @param message why the prompt was refused
         * @param code a stable error code
         * @param retryAfter the time to wait
         */
        public Overloaded(String message, String code, Duration retryAfter) {
            super(message, null);
            this.code = code;
            this.retryAfter = retryAfter;
        }

        /**
         * Returns a stable error code, such as `overloaded`.
         *
         * @return the code
         */
        public String code() {
            return code;
        }

        /**
         * Returns the time after which the prompt may be accepted.
         *
         * @return the time; zero if it is unknown
         */
        public Duration retryAfter() {
            return retryAfter;
        }
    }

    /** A turn has no structured output, or one that does not fit its type. */
    public static final class StructuredOutput extends QwenException {
        private static final long serialVersionUID = 1;
        private final transient @Nullable Result result;

        /**
         * Creates the exception.
         *
         * @param message what is wrong
         * @param cause the cause, or null
         * @param result the result of the turn, or null
         */
        public StructuredOutput(String message, @Nullable Throwable cause, @Nullable Result result) {
            super(message, cause);
            this.result = result;
        }

        /**
         * Returns the result of the turn.
         *
         * @return the result; empty if there is none
         */
        public Optional<Result> result() {
            return Optional.ofNullable(result);
        }
    }

    /** There is no session with the given id. */
    public static final class SessionNotFound extends QwenException {
        private static final long serialVersionUID = 1;

        /**
         * Creates the exception.
         *
         * @param message which session is missing
         */
        public SessionNotFound(String message) {
            super(message, null);
        }
    }

    /** The hub or a worker refused a request, such as an unknown permission mode. */
    public static final class RequestRefused extends QwenException {
        private static final long serialVersionUID = 1;
        /** The subtype of the request. */
        private final String request;
        /** A stable error code. */
        private final String code;
        /** True if another try may succeed. */
        private final boolean isRetryable;

        /**
         * Creates the exception.
         *
         * @param request the subtype of the control request
         * @param code a stable error code, or an empty text
         * @param message the reason
         * @param isRetryable true if the same request may succeed later
         */
        public RequestRefused(String request, String code, String message, boolean isRetryable) {
            super("The request " + request + " was refused: " + message + (code.isEmpty() ? "" : " (" + code + ")"), null);
            this.request = request;
            this.code = code;
            this.isRetryable = isRetryable;
        }

        /**
         * Returns the subtype of the control request.
         *
         * @return the subtype, such as `set_model`
         */
        public String request() {
            return request;
        }

        /**
         * Returns a stable error code.
         *
         * @return the code, or an empty text
         */
        public String code() {
            return code;
        }

        /**
         * Returns whether the same request may succeed later.
         *
         * @return true if it may
         */
        public boolean isRetryable() {
            return isRetryable;
        }
    }

    /** The host's session store failed. */
    public static final class StoreFailed extends QwenException {
        private static final long serialVersionUID = 1;

        /**
         * Creates the exception.
         *
         * @param message what failed
         * @param cause the cause
         */
        public StoreFailed(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** A time-out of {@link Timeouts} has passed. */
    public static final class Timeout extends QwenException {
        private static final long serialVersionUID = 1;
        /** The name of the time-out. */
        private final String name;
        /** The time that has passed. */
        private final Duration limit;

        /**
         * Creates the exception.
         *
         * @param name the name of the time-out
         * @param limit the time
         */
        public Timeout(String name, Duration limit) {
            super("No answer within " + limit.toMillis() + " ms (" + name + ").", null);
            this.name = name;
            this.limit = limit;
        }

        /**
         * Returns the name of the time-out.
         *
         * @return the name, such as `request`
         */
        public String name() {
            return name;
        }

        /**
         * Returns the time that has passed.
         *
         * @return the time
         */
        public Duration limit() {
            return limit;
        }
    }

    /** The thread was interrupted while it waited. Its interrupt status is set. */
    public static final class Interrupted extends QwenException {
        private static final long serialVersionUID = 1;

        /**
         * Creates the exception.
         *
         * @param message what was interrupted
         */
        public Interrupted(String message) {
            super(message, null);
        }
    }

    /** The manager, the session or the turn was closed. */
    public static final class Closed extends QwenException {
        private static final long serialVersionUID = 1;

        /** Creates the exception. */
        public Closed() {
            super("It is closed.", null);
        }
    }
}
