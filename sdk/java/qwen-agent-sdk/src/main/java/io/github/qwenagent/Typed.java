package io.github.qwenagent;

/**
 * A typed answer.
 *
 * @param output the checked value
 * @param result the result of its turn
 * @param <T> the type of the value
 */
public record Typed<T>(T output, Result result) {}
