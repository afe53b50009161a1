package io.github.qwenagent.internal.json;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Writes maps, iterables, strings, numbers, booleans and null as JSON. Other values are converted by {@link Binder}. */
public final class JsonWriter {
    private static final char[] HEXADECIMAL = "0123456789abcdef".toCharArray();

    private final StringBuilder out = new StringBuilder(256);

    private JsonWriter() {}

    /**
     * Returns a value as JSON text on one line.
     *
     * @throws IllegalArgumentException if the value has no JSON form
     */
    public static String write(@Nullable Object value) {
        JsonWriter writer = new JsonWriter();
        writer.value(value);
        return writer.out.toString();
    }

    /** Returns a value as a line of JSON, its end included. Lone surrogates become `?`. */
    public static byte[] line(Object value) {
        JsonWriter writer = new JsonWriter();
        writer.value(value);
        writer.out.append('\n');
        return writer.out.toString().getBytes(StandardCharsets.UTF_8);
    }

    private void value(@Nullable Object value) {
        if (value == null || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof CharSequence text) {
            string(text);
        } else if (value instanceof Number number) {
            number(number);
        } else if (value instanceof Map<?, ?> map) {
            object(map);
        } else if (value instanceof Iterable<?> items) {
            array(items);
        } else {
            value(Binder.toTree(value));
        }
    }

    private void number(Number number) {
        if (number instanceof Double || number instanceof Float) {
            double value = number.doubleValue();
            if (Double.isNaN(value) || Double.isInfinite(value)) {
                throw new IllegalArgumentException(value + " has no JSON form");
            }
        }
        out.append(number);
    }

    private void object(Map<?, ?> map) {
        out.append('{');
        String separator = "";
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            out.append(separator);
            string(String.valueOf(entry.getKey()));
            out.append(':');
            value(entry.getValue());
            separator = ",";
        }
        out.append('}');
    }

    private void array(Iterable<?> items) {
        out.append('[');
        String separator = "";
        for (Object item : items) {
            out.append(separator);
            value(item);
            separator = ",";
        }
        out.append(']');
    }

    private void string(CharSequence text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char character = text.charAt(i);
            switch (character) {
                case '"' -> out.append("\\\"");
                case '\\' -> out.append("\\\\");
                case '\n' -> out.append("\\n");
                case '\r' -> out.append("\\r");
                case '\t' -> out.append("\\t");
                default -> {
                    if (character < 0x20) {
                        out.append("\\u00").append(HEXADECIMAL[character >> 4]).append(HEXADECIMAL[character & 15]);
                    } else {
                        out.append(character);
                    }
                }
            }
        }
        out.append('"');
    }
}
