package io.github.qwenagent;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Bounds of a session. A turn that reaches one ends with the bound as its status. 0 and null are no bound.
 *
 * @param maxTurns the model calls for one prompt
 * @param maxSessionTurns the model calls of the session
 * @param maxToolCalls the tool calls for one prompt
 * @param maxWallTime the time of one turn
 * @param maxTokensTotal the tokens of one turn
 * @param maxBudgetUsd the cost; the model needs a price, built in or in `model.prices`
 */
public record Limits(int maxTurns, int maxSessionTurns, int maxToolCalls, @Nullable Duration maxWallTime,
        long maxTokensTotal, double maxBudgetUsd) {
    /**
     * Returns limits that bound nothing.
     *
     * @return the limits
     */
    public static Limits none() {
        return new Limits(0, 0, 0, null, 0, 0);
    }

    /**
     * Returns a copy with another value: the model calls for one prompt.
     *
     * @param value the model calls for one prompt
     * @return the copy
     */
    public Limits withMaxTurns(int value) {
        return new Limits(value, maxSessionTurns, maxToolCalls, maxWallTime, maxTokensTotal, maxBudgetUsd);
    }

    /**
     * Returns a copy with another value: the model calls of the session.
     *
     * @param value the model calls of the session
     * @return the copy
     */
    public Limits withMaxSessionTurns(int value) {
        return new Limits(maxTurns, value, maxToolCalls, maxWallTime, maxTokensTotal, maxBudgetUsd);
    }

    /**
     * Returns a copy with another value: the tool calls for one prompt.
     *
     * @param value the tool calls for one prompt
     * @return the copy
     */
    public Limits withMaxToolCalls(int value) {
        return new Limits(maxTurns, maxSessionTurns, value, maxWallTime, maxTokensTotal, maxBudgetUsd);
    }

    /**
     * Returns a copy with another value: the time of one turn.
     *
     * @param value the time of one turn
     * @return the copy
     */
    public Limits withMaxWallTime(Duration value) {
        return new Limits(maxTurns, maxSessionTurns, maxToolCalls, value, maxTokensTotal, maxBudgetUsd);
    }

    /**
     * Returns a copy with another value: the tokens of one turn.
     *
     * @param value the tokens of one turn
     * @return the copy
     */
    public Limits withMaxTokensTotal(long value) {
        return new Limits(maxTurns, maxSessionTurns, maxToolCalls, maxWallTime, value, maxBudgetUsd);
    }

    /**
     * Returns a copy with another value: the cost; the model needs a price, built in or in `model.prices`.
     *
     * @param value the cost; the model needs a price, built in or in `model.prices`
     * @return the copy
     */
    public Limits withMaxBudgetUsd(double value) {
        return new Limits(maxTurns, maxSessionTurns, maxToolCalls, maxWallTime, maxTokensTotal, value);
    }
}
