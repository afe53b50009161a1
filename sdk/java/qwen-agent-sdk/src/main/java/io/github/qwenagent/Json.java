package io.github.qwenagent;

import io.github.qwenagent.internal.json.Binder;
import io.github.qwenagent.internal.json.Fields;
import io.github.qwenagent.internal.json.JsonException;
import io.github.qwenagent.internal.json.JsonReader;
import io.github.qwenagent.internal.json.JsonWriter;
import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A JSON value. It is immutable as long as its maps and lists are not changed.
 */
public final class Json {
    private final @Nullable Object value;

    private Json(@Nullable Object value) {
        this.value = value;
    }

    /**
     * Reads JSON text.
     *
     * @param text one JSON value
     * @return the value
     * @throws IllegalArgumentException if the text is not valid JSON
     */
    public static Json parse(String text) {
        try {
            return new Json(JsonReader.read(text));
        } catch (JsonException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    /**
     * Returns the JSON form of a value: maps, iterables, arrays, strings, numbers, booleans, enum constants, records,
     * optionals and null.
     *
     * @param value the value
     * @return its JSON form
     * @throws IllegalArgumentException if the value has no JSON form
     */
    public static Json of(@Nullable Object value) {
        return new Json(Binder.toTree(value));
    }

    /** Wraps a value that was read from JSON; null if it is absent. */
    static @Nullable Json orNull(@Nullable Object value) {
        return value == null ? null : new Json(value);
    }

    /**
     * Returns the value as a {@link Map}, a {@link java.util.List}, a string, a number, a boolean or null.
     *
     * @return the value
     */
    public @Nullable Object value() {
        return value;
    }

    /**
     * Returns a field of an object.
     *
     * @param name the name of the field
     * @return its value; null if this is not an object, or the field is absent or null
     */
    public @Nullable Json get(String name) {
        return value instanceof Map<?, ?> map ? orNull(map.get(name)) : null;
    }

    /**
     * Converts the value, for example to a record whose components are named like its fields.
     *
     * @param <T> the type
     * @param type the type
     * @return the value
     * @throws IllegalArgumentException if the value does not fit the type
     */
    public <T> T as(Class<T> type) {
        try {
            if (type.getEnclosingClass() == Wire.class) {
                return type.cast(readWire(type));
            }
            return Binder.fromTree(value, type);
        } catch (JsonException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    /** Reads a type of {@link Wire}, which takes absent fields as empty. */
    private Object readWire(Class<?> type) throws JsonException {
        Fields fields = Fields.of(value);
        if (fields == null) {
            throw new JsonException("The value is not an object.");
        }
        try {
            return type.getDeclaredMethod("read", Fields.class).invoke(null, fields);
        } catch (InvocationTargetException e) {
            throw new JsonException(String.valueOf(e.getCause().getMessage()));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Returns the value as JSON text on one line. */
    @Override
    public String toString() {
        return JsonWriter.write(value);
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Json json && Objects.equals(value, json.value);
    }

    @Override
    public int hashCode() {
        return Objects.hashCode(value);
    }
}
