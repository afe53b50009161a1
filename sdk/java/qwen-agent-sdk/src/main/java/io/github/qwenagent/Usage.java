package io.github.qwenagent;

import io.github.qwenagent.internal.json.Fields;
import org.jspecify.annotations.Nullable;

/**
 * Counts of tokens and model calls.
 *
 * @param inputTokens tokens that the model read
 * @param outputTokens tokens that the model wrote
 * @param totalTokens the sum of both
 * @param cachedTokens the part of the input that came from the server's cache
 * @param reasoningTokens the part of the output that was thinking
 * @param calls calls of the model
 * @param costUsd the cost; null if a price is unknown
 * @param isEstimated true if the model's server reported no counts
 */
public record Usage(long inputTokens, long outputTokens, long totalTokens, long cachedTokens, long reasoningTokens, long calls,
        @Nullable Double costUsd, boolean isEstimated) {
    static final Usage NONE = new Usage(0, 0, 0, 0, 0, 0, null, false);

    /** Reads the usage of a message or a turn. */
    static Usage ofTokens(@Nullable Fields usage, long calls, @Nullable Double cost) {
        if (usage == null) {
            return calls == 0 && cost == null ? NONE : new Usage(0, 0, 0, 0, 0, calls, cost, false);
        }
        Fields prompt = usage.optional("prompt_tokens_details");
        Fields completion = usage.optional("completion_tokens_details");
        return new Usage(usage.count("prompt_tokens"), usage.count("completion_tokens"), usage.count("total_tokens"),
                prompt == null ? 0 : prompt.count("cached_tokens"), completion == null ? 0 : completion.count("reasoning_tokens"),
                calls, cost, Boolean.TRUE.equals(usage.value("estimated")));
    }

    /** Reads the usage of one model or agent, which name the number of calls differently. */
    static Usage ofModel(Fields usage) {
        Double cost = usage.value("cost_usd") instanceof Number number ? (Double) number.doubleValue() : null;
        return new Usage(usage.count("prompt_tokens"), usage.count("completion_tokens"), usage.count("total_tokens"),
                usage.count("cached_tokens"), usage.count("reasoning_tokens"), usage.count("calls") + usage.count("model_calls"), cost, false);
    }
}
