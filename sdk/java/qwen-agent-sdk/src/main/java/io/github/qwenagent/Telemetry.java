package io.github.qwenagent;

import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/** Traces what the SDK does. Hosts implement it with their tracer, such as OpenTelemetry. Its methods must not block. */
public interface Telemetry {
    /** No tracing. */
    Telemetry NONE = new Telemetry() {
        @Override
        public TurnSpan startTurn(String sessionId, String promptId) {
            return (result, failure) -> {
                // There is no span to end.
            };
        }
    };

    /**
     * Starts the span of a turn below the span of the current thread.
     *
     * @param sessionId the session
     * @param promptId the prompt
     * @return the span
     */
    TurnSpan startTurn(String sessionId, String promptId);

    /**
     * Runs a tool of this process in a span below the worker's span of the call.
     *
     * @param <T> the type of its result
     * @param server the name of the tool's server
     * @param tool the tool's name
     * @param traceparent the worker's span in the form of W3C; empty without telemetry in the worker
     * @param call runs the tool
     * @return what the tool returned
     * @throws Exception what the tool threw
     */
    default <T> T inTool(String server, String tool, String traceparent, Callable<T> call) throws Exception {
        return call.call();
    }

    /** The span of a turn. */
    @FunctionalInterface
    interface TurnSpan {
        /**
         * Ends the span. It is called once, on any thread.
         *
         * @param result the result of the turn, or null
         * @param failure why there is no result, or null
         */
        void end(@Nullable Result result, @Nullable Throwable failure);

        /**
         * Returns the span in the form of W3C. It goes to the hub, so that one trace leads from the host to the tools.
         *
         * @return the `traceparent`; empty for no span
         */
        default String traceparent() {
            return "";
        }

        /**
         * Returns the state of the trace in the form of W3C.
         *
         * @return the `tracestate`; empty for none
         */
        default String tracestate() {
            return "";
        }
    }
}
