package io.github.qwenagent;

import io.github.qwenagent.internal.json.Fields;
import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The last message of every turn.
 *
 * @param meta where the message comes from
 * @param text the text of the last message that has any
 * @param status how the turn ended
 * @param error the cause of a status other than done; null if there is no other cause than the status
 * @param usage what the whole turn used, sub-agents included
 * @param usageByModel the same by model
 * @param usageByAgent the part that sub-agents used, by name; empty without sub-agents
 * @param denials the calls that were refused
 * @param toolCalls the calls of the turn in order, those of sub-agents excluded
 * @param output the structured output; null if none was asked for or none came
 * @param duration how long the turn took
 */
public record Result(Meta meta, String text, Status status, @Nullable Failure error, Usage usage, Map<String, Usage> usageByModel,
        Map<String, AgentUsage> usageByAgent, List<Denial> denials, List<ToolCall> toolCalls, @Nullable Json output, Duration duration) implements Message {
    /**
     * What the runs of one sub-agent used, without the sub-agents that it started.
     *
     * @param usage the tokens and calls
     * @param runs how often it was started
     * @param toolCalls its tool calls
     */
    public record AgentUsage(Usage usage, long runs, long toolCalls) {}

    /**
     * A tool call that was refused.
     *
     * @param toolName the tool's name
     * @param toolCallId the call's id
     * @param arguments the arguments, or null
     * @param reason who refused and why
     */
    public record Denial(String toolName, String toolCallId, @Nullable Json arguments, String reason) {}

    /**
     * The error that ended a turn.
     *
     * @param code a stable error code, or an empty text
     * @param type the class of the error, such as `api_error`
     * @param message what happened
     * @param isRetryable true if the same prompt may succeed later
     * @param retryAfter the time to wait before that; zero if it is unknown
     */
    public record Failure(String code, String type, String message, boolean isRetryable, Duration retryAfter) {
        /** Reads an error of a line. `retry_after_ms` is a field of the hub's refusals. */
        static Failure of(Fields body) {
            return new Failure(body.text("code"), body.text("type"), body.text("message"), Boolean.TRUE.equals(body.value("retryable")),
                    Duration.ofMillis(Math.max(0, body.count("retry_after_ms"))));
        }
    }

    /**
     * Returns whether the turn completed.
     *
     * @return true for {@link Status#DONE}
     */
    public boolean isDone() {
        return status == Status.DONE;
    }

    /**
     * Returns whether the turn completed and no call was refused.
     *
     * @return true if it did
     */
    public boolean isOk() {
        return isDone() && denials.isEmpty();
    }

    /**
     * Returns the cost of the turn in US dollars.
     *
     * @return the cost; null if a price is unknown
     */
    public @Nullable Double costUsd() {
        return usage.costUsd();
    }

    /**
     * Converts the structured output of a turn that was run with {@link TurnOptions.Builder#outputSchema}.
     *
     * @param <T> the type
     * @param type the type
     * @return the output
     * @throws QwenException.StructuredOutput if there is none, or if it does not fit the type
     */
    public <T> T outputAs(Class<T> type) {
        if (output == null) {
            throw new QwenException.StructuredOutput("The turn ended with the status " + status + " and without structured output.", null, this);
        }
        try {
            return output.as(type);
        } catch (IllegalArgumentException e) {
            throw new QwenException.StructuredOutput(String.valueOf(e.getMessage()), e, this);
        }
    }

    /** Returns the exception of a turn that did not complete. */
    QwenException failure() {
        String what = "The turn ended with the status " + status;
        if (error == null) {
            return new QwenException.TurnFailed(what + ".", "", "", false, this);
        }
        return failure(what, error, this);
    }

    /** Returns the exception of an error. */
    static QwenException failure(String what, Failure error, @Nullable Result result) {
        String message = what + ": " + error.message() + (error.code().isEmpty() ? "" : " (" + error.code() + ")");
        return switch (error.code()) {
            case "overloaded", "draining", "session_quarantined", "worker_circuit_open" ->
                    new QwenException.Overloaded(message, error.code(), error.retryAfter());
            case "unsupported_protocol" -> new QwenException.Protocol(message, null);
            default -> new QwenException.TurnFailed(message, error.code(), error.type(), error.isRetryable(), result);
        };
    }

    /** Reads a terminal record. */
    static Result read(Meta meta, String text, List<ToolCall> calls, @Nullable Fields usage, Fields metadata, Fields turn) {
        Map<String, Usage> byModel = new LinkedHashMap<>();
        Fields models = turn.optional("usage_by_model");
        double total = 0;
        boolean hasPrices = models != null && !models.map().isEmpty();
        if (models != null) {
            for (String model : models.map().keySet()) {
                Fields tokens = models.optional(model);
                Usage used = tokens == null ? Usage.NONE : Usage.ofModel(tokens);
                byModel.put(model, used);
                Double cost = used.costUsd();
                hasPrices &= cost != null;
                total += cost == null ? 0 : cost;
            }
        }
        Map<String, AgentUsage> byAgent = new LinkedHashMap<>();
        Fields agents = turn.optional("usage_by_agent");
        if (agents != null) {
            for (String agent : agents.map().keySet()) {
                Fields tokens = agents.optional(agent);
                if (tokens != null) {
                    byAgent.put(agent, new AgentUsage(Usage.ofModel(tokens), tokens.count("runs"), tokens.count("tool_calls")));
                }
            }
        }
        Fields error = metadata.optional("error");
        return new Result(meta, text, Status.of(turn.text("status")), error == null ? null : Failure.of(error),
                Usage.ofTokens(usage, turn.count("model_calls"), hasPrices ? total : null), Collections.unmodifiableMap(byModel),
                Collections.unmodifiableMap(byAgent),
                turn.list("permission_denials").stream().map(Result::denial).toList(), List.copyOf(calls),
                Json.orNull(turn.value("structured_output")), Duration.ofMillis(Math.max(0, turn.count("duration_ms"))));
    }

    private static Denial denial(Fields denial) {
        return new Denial(denial.text("tool_name"), denial.text("tool_call_id"), Json.orNull(denial.value("arguments")), denial.text("reason"));
    }
}
