package io.github.qwenagent;

import org.jspecify.annotations.Nullable;

/**
 * What became of a prompt that steers.
 *
 * @param hasJoined true if the prompt joined the running turn
 * @param result the result of the prompt's own turn; null if it joined another
 */
public record SteerOutcome(boolean hasJoined, @Nullable Result result) {}
