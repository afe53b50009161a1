package io.github.qwenagent.internal.json;

import io.github.qwenagent.Json;
import java.lang.reflect.Array;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.WildcardType;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.nio.file.Path;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.UUID;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Converts values between the types of Java and trees as {@link JsonReader} returns them. */
public final class Binder {
    /** Types whose JSON form is a string. */
    static final Map<Class<?>, Function<String, Object>> TEXTS = Map.of(
            Instant.class, Instant::parse, OffsetDateTime.class, OffsetDateTime::parse, LocalDate.class, LocalDate::parse,
            Duration.class, Duration::parse, UUID.class, UUID::fromString, URI.class, URI::create, Path.class, Path::of);

    private Binder() {}

    /**
     * Returns the tree of a value.
     *
     * @throws IllegalArgumentException if the value has no JSON form
     */
    public static @Nullable Object toTree(@Nullable Object value) {
        if (value == null || value instanceof Boolean || value instanceof Number) {
            return value;
        }
        if (value instanceof CharSequence || value instanceof Character) {
            return value.toString();
        }
        if (value instanceof Json json) {
            return json.value();
        }
        if (value instanceof Map<?, ?> map) {
            Map<String, @Nullable Object> tree = new LinkedHashMap<>();
            map.forEach((key, item) -> tree.put(String.valueOf(toTree(key)), toTree(item)));
            return tree;
        }
        if (value instanceof Iterable<?> items && !(value instanceof Path)) {
            List<@Nullable Object> tree = new ArrayList<>();
            items.forEach(item -> tree.add(toTree(item)));
            return tree;
        }
        if (value instanceof Enum<?> constant) {
            return constantName(constant);
        }
        if (value instanceof Record) {
            return RecordShape.of(value.getClass()).values(value);
        }
        return otherTree(value);
    }

    private static @Nullable Object otherTree(Object value) {
        if (value instanceof Optional<?> optional) {
            return toTree(optional.orElse(null));
        }
        if (value instanceof OptionalInt optional) {
            return optional.isPresent() ? optional.getAsInt() : null;
        }
        if (value instanceof OptionalLong optional) {
            return optional.isPresent() ? optional.getAsLong() : null;
        }
        if (value instanceof OptionalDouble optional) {
            return optional.isPresent() ? optional.getAsDouble() : null;
        }
        if (value.getClass().isArray()) {
            List<@Nullable Object> tree = new ArrayList<>();
            for (int i = 0; i < Array.getLength(value); i++) {
                tree.add(toTree(Array.get(value, i)));
            }
            return tree;
        }
        if (TEXTS.containsKey(value.getClass()) || value instanceof Path) {
            return value.toString();
        }
        throw new IllegalArgumentException("A value of the type " + value.getClass().getName()
                + " has no JSON form. Use a record, a map, a list, a string, a number or a boolean.");
    }

    static String constantName(Enum<?> constant) {
        try {
            return RecordShape.nameOf(constant.getDeclaringClass().getField(constant.name()), constant.name());
        } catch (NoSuchFieldException e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Converts a tree to a type.
     *
     * @throws JsonException if the value does not fit the type
     * @throws IllegalArgumentException if the type has no JSON form
     */
    @SuppressWarnings("unchecked")
    public static <T> T fromTree(@Nullable Object tree, Class<T> type) throws JsonException {
        return (T) convert(tree, type, "");
    }

    private static @Nullable Object convert(@Nullable Object tree, Type type, String at) throws JsonException {
        if (type instanceof Class<?> plain) {
            return convertClass(tree, plain, at);
        }
        if (type instanceof WildcardType wildcard) {
            return convert(tree, wildcard.getUpperBounds()[0], at);
        }
        if (type instanceof GenericArrayType array) {
            return convertArray(tree, array.getGenericComponentType(), rawClass(array.getGenericComponentType()), at);
        }
        if (!(type instanceof ParameterizedType generic)) {
            throw unsupported(type);
        }
        Class<?> raw = (Class<?>) generic.getRawType();
        Type[] arguments = generic.getActualTypeArguments();
        if (raw == Optional.class) {
            return tree == null ? Optional.empty() : Optional.of(requireValue(convert(tree, arguments[0], at), at));
        }
        if (raw == Map.class && arguments[0] == String.class) {
            Map<String, @Nullable Object> map = new LinkedHashMap<>();
            for (Map.Entry<?, ?> entry : object(tree, at).entrySet()) {
                map.put((String) entry.getKey(), convert(entry.getValue(), arguments[1], at + "/" + entry.getKey()));
            }
            return Collections.unmodifiableMap(map);
        }
        if (raw == List.class || raw == Collection.class || raw == Iterable.class) {
            return Collections.unmodifiableList(convertItems(tree, arguments[0], at));
        }
        if (raw == Set.class) {
            return Collections.unmodifiableSet(new LinkedHashSet<>(convertItems(tree, arguments[0], at)));
        }
        throw unsupported(type);
    }

    private static Object requireValue(@Nullable Object value, String at) throws JsonException {
        if (value == null) {
            throw new JsonException(place(at) + " is null.");
        }
        return value;
    }

    private static @Nullable Object convertClass(@Nullable Object tree, Class<?> type, String at) throws JsonException {
        if (type == Object.class) {
            return tree;
        }
        if (type == Json.class) {
            return Json.of(tree);
        }
        if (tree == null) {
            return absent(type, at);
        }
        if (type == String.class) {
            return as(String.class, tree, at);
        }
        if (type == boolean.class || type == Boolean.class) {
            return as(Boolean.class, tree, at);
        }
        if (isNumber(type)) {
            return convertNumber(as(Number.class, tree, at), type, at);
        }
        if (type.isEnum()) {
            return constant(as(String.class, tree, at), type, at);
        }
        if (type.isRecord()) {
            return convertRecord(tree, type, at);
        }
        if (type.isArray()) {
            return convertArray(tree, type.getComponentType(), type.getComponentType(), at);
        }
        if (type == OptionalInt.class) {
            return OptionalInt.of((Integer) convertNumber(as(Number.class, tree, at), int.class, at));
        }
        if (type == OptionalLong.class) {
            return OptionalLong.of((Long) convertNumber(as(Number.class, tree, at), long.class, at));
        }
        if (type == OptionalDouble.class) {
            return OptionalDouble.of(as(Number.class, tree, at).doubleValue());
        }
        Function<String, Object> parse = TEXTS.get(type);
        if (parse != null) {
            return convertText(as(String.class, tree, at), parse, at);
        }
        if (type == Map.class) {
            return object(tree, at);
        }
        if (type == List.class) {
            return as(List.class, tree, at);
        }
        throw unsupported(type);
    }

    private static Object convertText(String text, Function<String, Object> parse, String at) throws JsonException {
        try {
            return parse.apply(text);
        } catch (DateTimeException | IllegalArgumentException e) {
            throw new JsonException(place(at) + " is not valid: " + e.getMessage());
        }
    }

    private static @Nullable Object absent(Class<?> type, String at) throws JsonException {
        if (type.isPrimitive()) {
            throw new JsonException(place(at) + " is null.");
        }
        if (type == OptionalInt.class) {
            return OptionalInt.empty();
        }
        if (type == OptionalLong.class) {
            return OptionalLong.empty();
        }
        return type == OptionalDouble.class ? OptionalDouble.empty() : null;
    }

    private static Object convertRecord(Object tree, Class<?> type, String at) throws JsonException {
        Map<?, ?> fields = object(tree, at);
        RecordShape shape = RecordShape.of(type);
        @Nullable Object[] values = new Object[shape.components.size()];
        for (int i = 0; i < values.length; i++) {
            RecordShape.Component component = shape.components.get(i);
            Object value = fields.get(component.name());
            if (value == null && !component.isOptional() && component.type() != Object.class && component.type() != Json.class) {
                throw new JsonException(place(at) + " lacks \"" + component.name() + "\".");
            }
            values[i] = convert(value, component.type(), at + "/" + component.name());
        }
        return shape.create(values);
    }

    private static Object convertArray(@Nullable Object tree, Type component, Class<?> raw, String at) throws JsonException {
        List<@Nullable Object> items = convertItems(tree, component, at);
        Object array = Array.newInstance(raw, items.size());
        for (int i = 0; i < items.size(); i++) {
            Array.set(array, i, items.get(i));
        }
        return array;
    }

    private static Class<?> rawClass(Type type) {
        if (type instanceof ParameterizedType generic) {
            return (Class<?>) generic.getRawType();
        }
        if (type instanceof Class<?> plain) {
            return plain;
        }
        throw unsupported(type);
    }

    private static List<@Nullable Object> convertItems(@Nullable Object tree, Type type, String at) throws JsonException {
        List<@Nullable Object> converted = new ArrayList<>();
        for (Object item : as(List.class, requireValue(tree, at), at)) {
            converted.add(convert(item, type, at + "/" + converted.size()));
        }
        return converted;
    }

    private static Map<?, ?> object(@Nullable Object tree, String at) throws JsonException {
        return as(Map.class, requireValue(tree, at), at);
    }

    private static Object constant(String name, Class<?> type, String at) throws JsonException {
        for (Object constant : type.getEnumConstants()) {
            if (constantName((Enum<?>) constant).equals(name)) {
                return constant;
            }
        }
        throw new JsonException(place(at) + " is \"" + name + "\", which is not a constant of " + type.getSimpleName() + ".");
    }

    static boolean isNumber(Class<?> type) {
        return isInteger(type) || type == double.class || type == Double.class || type == float.class || type == Float.class
                || type == BigDecimal.class || type == Number.class;
    }

    static boolean isInteger(Class<?> type) {
        return type == int.class || type == Integer.class || type == long.class || type == Long.class || type == short.class
                || type == Short.class || type == byte.class || type == Byte.class || type == BigInteger.class;
    }

    private static Object convertNumber(Number number, Class<?> type, String at) throws JsonException {
        if (type == double.class || type == Double.class) {
            return number.doubleValue();
        }
        if (type == float.class || type == Float.class) {
            return number.floatValue();
        }
        if (type == Number.class) {
            return number;
        }
        if (type == BigDecimal.class) {
            return new BigDecimal(number.toString());
        }
        try {
            // 2.0 is an integer, as JSON Schema has it. More digits than a long has are not converted.
            BigInteger exact = number instanceof BigInteger big ? big : new BigDecimal(number.toString()).toBigIntegerExact();
            if (type == int.class || type == Integer.class) {
                return exact.intValueExact();
            }
            if (type == long.class || type == Long.class) {
                return exact.longValueExact();
            }
            if (type == short.class || type == Short.class) {
                return exact.shortValueExact();
            }
            if (type == byte.class || type == Byte.class) {
                return exact.byteValueExact();
            }
            return exact;
        } catch (ArithmeticException e) {
            throw new JsonException(place(at) + " is not a number of the type " + type.getSimpleName() + ".");
        }
    }

    private static <T> T as(Class<T> type, Object tree, String at) throws JsonException {
        if (!type.isInstance(tree)) {
            throw new JsonException(place(at) + " is " + Schema.kindOf(tree) + ".");
        }
        return type.cast(tree);
    }

    static String place(String at) {
        return at.isEmpty() ? "The value" : at;
    }

    static IllegalArgumentException unsupported(Type type) {
        return new IllegalArgumentException("The type " + type.getTypeName()
                + " has no JSON form. Use records, enums, strings, numbers, booleans, lists and maps with string keys.");
    }
}
