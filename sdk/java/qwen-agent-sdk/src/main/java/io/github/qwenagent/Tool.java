package io.github.qwenagent;

import io.github.qwenagent.internal.json.Binder;
import io.github.qwenagent.internal.json.JsonException;
import io.github.qwenagent.internal.json.JsonWriter;
import io.github.qwenagent.internal.json.Schema;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A function of this program that the agent can call. */
public final class Tool {
    static final Pattern NAME = Pattern.compile("[A-Za-z0-9_.-]+");

    /**
     * What a tool does.
     *
     * @param <I> the record of its arguments
     */
    @FunctionalInterface
    public interface Function<I> {
        /**
         * Runs the tool. The thread is interrupted when the answer is no longer needed.
         *
         * @param input the arguments, which fit their schema
         * @return a string or a {@link ToolResult} as it is, any other value as JSON
         * @throws Exception a failure; only the text of a {@link ToolException} is given to the model
         */
        @Nullable Object call(I input) throws Exception;
    }

    /** Runs a tool with arguments as they came. */
    @FunctionalInterface
    private interface Runner {
        ToolResult run(@Nullable Object arguments) throws Exception;
    }

    private final String name;
    private final Map<String, Object> listing;
    private final Runner runner;

    private Tool(String name, Map<String, Object> listing, Runner runner) {
        this.name = name;
        this.listing = listing;
        this.runner = runner;
    }

    /**
     * Makes a function a tool. The schema of its arguments derives from a record: components are named as in Java or by
     * {@link Named}, described by {@link Description}, and optional if they are an {@link java.util.Optional} or have an
     * annotation named Nullable. Arguments that do not fit never reach the function. The calls of one message run in the order
     * that the model wrote.
     *
     * @param <I> the record
     * @param name letters, digits, `.`, `_` and `-`
     * @param description what the tool is for, which the model reads
     * @param input the record
     * @param function the function
     * @return the tool
     * @throws IllegalArgumentException if the name is not a tool's name, or the record has no schema
     */
    public static <I> Tool of(String name, String description, Class<I> input, Function<I> function) {
        if (!NAME.matcher(name).matches()) {
            throw new IllegalArgumentException("\"" + name + "\" is not a name for a tool. Use letters, digits, '.', '_' and '-'.");
        }
        if (!input.isRecord()) {
            throw new IllegalArgumentException("The arguments of the tool " + name + " are not a record: " + input.getName() + ".");
        }
        Schema schema = Schema.of(input);
        Map<String, Object> listing = new LinkedHashMap<>();
        listing.put("name", name);
        listing.put("description", description);
        listing.put("inputSchema", schema.tree());
        return new Tool(name, listing, arguments -> {
            I bound;
            try {
                schema.check(arguments);
                bound = Binder.fromTree(arguments, input);
            } catch (JsonException e) {
                return failure("The arguments do not fit: " + e.getMessage());
            }
            try {
                return toResult(function.call(bound));
            } catch (ToolException e) {
                return failure(String.valueOf(e.getMessage()));
            }
        });
    }

    /**
     * Adds hints for users and models, such as `readOnlyHint`. They grant nothing.
     *
     * @param annotations the hints
     * @return the tool with the hints
     */
    public Tool annotate(Map<String, ?> annotations) {
        Map<String, Object> annotated = new LinkedHashMap<>(listing);
        annotated.put("annotations", annotations);
        return new Tool(name, annotated, runner);
    }

    private static ToolResult failure(String text) {
        return new ToolResult(List.of(ToolResult.Content.text(text)), true);
    }

    private static ToolResult toResult(@Nullable Object returned) {
        if (returned instanceof ToolResult result) {
            return result;
        }
        return ToolResult.of(ToolResult.Content.text(returned instanceof String text ? text : JsonWriter.write(Binder.toTree(returned))));
    }

    String name() {
        return name;
    }

    Map<String, Object> listing() {
        return listing;
    }

    ToolResult run(@Nullable Object arguments) throws Exception {
        return runner.run(arguments);
    }
}
