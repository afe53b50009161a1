package io.github.qwenagent;

/**
 * A call that the model made.
 *
 * @param id the call's id
 * @param name the tool's name
 * @param arguments a JSON object; an empty one if the model wrote anything else
 * @param argumentsText the arguments as the model wrote them
 */
public record ToolCall(String id, String name, Json arguments, String argumentsText) {}
