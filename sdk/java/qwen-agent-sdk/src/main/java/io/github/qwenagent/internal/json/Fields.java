package io.github.qwenagent.internal.json;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The fields of a JSON object. The typed readers return null for an absent field and for null, and fail for a value of
 * another type.
 */
public final class Fields {
    private final Map<String, @Nullable Object> map;

    private Fields(Map<String, @Nullable Object> map) {
        this.map = map;
    }

    /** Returns an object without fields. */
    public static Fields empty() {
        return new Fields(Map.of());
    }

    /** Returns a value, or another one if it is null. */
    public static <T> T or(@Nullable T value, T otherwise) {
        return value == null ? otherwise : value;
    }

    /** Returns the fields of a value that was read from JSON; null if it is not an object. */
    @SuppressWarnings("unchecked")
    public static @Nullable Fields of(@Nullable Object value) {
        return value instanceof Map<?, ?> map ? new Fields((Map<String, @Nullable Object>) map) : null;
    }

    /** Returns the fields of a line; null if it is not a JSON object. */
    public static @Nullable Fields parse(byte[] line) {
        try {
            return of(JsonReader.read(line));
        } catch (JsonException e) {
            return null;
        }
    }

    /** Returns the fields as a map. */
    public Map<String, @Nullable Object> map() {
        return map;
    }

    /** Returns a field of any type. */
    public @Nullable Object value(String name) {
        return map.get(name);
    }

    private <T> @Nullable T typed(String name, Class<T> type) throws JsonException {
        Object value = map.get(name);
        if (value != null && !type.isInstance(value)) {
            throw wrongType(name);
        }
        return type.cast(value);
    }

    private static JsonException wrongType(String name) {
        return new JsonException("The field " + name + " has a value of another type.");
    }

    /** Returns a string. */
    public @Nullable String string(String name) throws JsonException {
        return typed(name, String.class);
    }

    /** Returns a boolean. */
    public @Nullable Boolean bool(String name) throws JsonException {
        return typed(name, Boolean.class);
    }

    /** Returns an integer. */
    public @Nullable Long integer(String name) throws JsonException {
        return typed(name, Long.class);
    }

    /** Returns a number. */
    public @Nullable Double number(String name) throws JsonException {
        Number value = typed(name, Number.class);
        return value == null ? null : value.doubleValue();
    }

    /** Returns an object. */
    public @Nullable Fields object(String name) throws JsonException {
        Object value = map.get(name);
        Fields fields = of(value);
        if (value != null && fields == null) {
            throw wrongType(name);
        }
        return fields;
    }

    /** Reads an object with a function. */
    public <T> @Nullable T object(String name, Reader<T> reader) throws JsonException {
        Fields fields = object(name);
        return fields == null ? null : reader.read(fields);
    }

    /** Reads a list whose items are objects. */
    public <T> @Nullable List<T> objects(String name, Reader<T> reader) throws JsonException {
        List<?> items = typed(name, List.class);
        if (items == null) {
            return null;
        }
        List<T> read = new ArrayList<>(items.size());
        for (Object item : items) {
            Fields fields = of(item);
            if (fields == null) {
                throw wrongType(name);
            }
            read.add(reader.read(fields));
        }
        return List.copyOf(read);
    }

    /** Reads an object whose values are objects. */
    public <T> @Nullable Map<String, T> objectMap(String name, Reader<T> reader) throws JsonException {
        Fields fields = object(name);
        if (fields == null) {
            return null;
        }
        Map<String, T> read = new LinkedHashMap<>();
        for (String key : fields.map.keySet()) {
            T value = fields.object(key, reader);
            if (value == null) {
                throw wrongType(name);
            }
            read.put(key, value);
        }
        return Collections.unmodifiableMap(read);
    }

    /** Returns a list of strings. */
    public @Nullable List<String> strings(String name) throws JsonException {
        return list(name, item -> item instanceof String text ? text : null);
    }

    /** Returns a list of integers. */
    public @Nullable List<Long> integers(String name) throws JsonException {
        return list(name, item -> item instanceof Long number ? number : null);
    }

    private <T> @Nullable List<T> list(String name, Function<@Nullable Object, @Nullable T> convert) throws JsonException {
        List<?> items = typed(name, List.class);
        if (items == null) {
            return null;
        }
        List<T> read = new ArrayList<>(items.size());
        for (Object item : items) {
            T converted = convert.apply(item);
            if (converted == null) {
                throw wrongType(name);
            }
            read.add(converted);
        }
        return List.copyOf(read);
    }

    /** Returns a string, or an empty one if the field is absent or of another type. */
    public String text(String name) {
        return map.get(name) instanceof String text ? text : "";
    }

    /** Returns an integer, or 0 if the field is absent or of another type. */
    public long count(String name) {
        return map.get(name) instanceof Long number ? number : 0;
    }

    /** Returns an object, or null if the field is absent or of another type. */
    public @Nullable Fields optional(String name) {
        return of(map.get(name));
    }

    /** Returns the objects in a list; none if the field is absent or of another type. */
    public List<Fields> list(String name) {
        List<Fields> found = new ArrayList<>();
        if (map.get(name) instanceof List<?> items) {
            for (Object item : items) {
                Fields fields = of(item);
                if (fields != null) {
                    found.add(fields);
                }
            }
        }
        return found;
    }

    /** Reads the fields of an object into a value. */
    @FunctionalInterface
    public interface Reader<T> {
        /** Reads a value and fails for fields of other types. */
        T read(Fields fields) throws JsonException;
    }
}
