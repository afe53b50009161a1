package io.github.qwenagent.internal.json;

import io.github.qwenagent.Json;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.WildcardType;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A JSON Schema that derives from a type, and the check of values against it. */
public final class Schema {
    private final Map<String, Object> tree;

    private Schema(Map<String, Object> tree) {
        this.tree = tree;
    }

    /**
     * Derives the schema of a type.
     *
     * @throws IllegalArgumentException if the type has no JSON form or contains itself
     */
    public static Schema of(Class<?> type) {
        return new Schema(derive(type, Set.of()));
    }

    /** Returns the schema as a tree. */
    public Map<String, Object> tree() {
        return tree;
    }

    private static Map<String, Object> derive(Type type, Set<Type> parents) {
        if (type instanceof Class<?> plain) {
            return deriveClass(plain, parents);
        }
        if (type instanceof WildcardType wildcard) {
            return derive(wildcard.getUpperBounds()[0], parents);
        }
        if (type instanceof GenericArrayType array) {
            return listOf(array.getGenericComponentType(), parents);
        }
        if (!(type instanceof ParameterizedType generic)) {
            throw Binder.unsupported(type);
        }
        Type raw = generic.getRawType();
        Type[] arguments = generic.getActualTypeArguments();
        if (raw == Optional.class) {
            return nullable(derive(arguments[0], parents));
        }
        if (raw == Map.class && arguments[0] == String.class) {
            return new LinkedHashMap<>(Map.of("type", "object", "additionalProperties", derive(arguments[1], parents)));
        }
        if (raw == List.class || raw == Collection.class || raw == Iterable.class || raw == Set.class) {
            return listOf(arguments[0], parents);
        }
        throw Binder.unsupported(type);
    }

    private static Map<String, Object> deriveClass(Class<?> type, Set<Type> parents) {
        if (type == Object.class || type == Json.class) {
            return new LinkedHashMap<>();
        }
        if (type == String.class || type == char.class || type == Character.class) {
            return simple("string");
        }
        if (type == boolean.class || type == Boolean.class) {
            return simple("boolean");
        }
        if (Binder.isInteger(type)) {
            return simple("integer");
        }
        if (Binder.isNumber(type)) {
            return simple("number");
        }
        if (type == OptionalInt.class || type == OptionalLong.class) {
            return nullable(simple("integer"));
        }
        if (type == OptionalDouble.class) {
            return nullable(simple("number"));
        }
        if (Binder.TEXTS.containsKey(type)) {
            return simple("string");
        }
        if (type.isEnum()) {
            Map<String, Object> schema = simple("string");
            schema.put("enum", Arrays.stream(type.getEnumConstants()).map(each -> Binder.constantName((Enum<?>) each)).toList());
            return schema;
        }
        if (type.isArray()) {
            return listOf(type.getComponentType(), parents);
        }
        if (type == Map.class) {
            return simple("object");
        }
        if (type.isRecord()) {
            return deriveRecord(type, parents);
        }
        throw Binder.unsupported(type);
    }

    private static Map<String, Object> deriveRecord(Class<?> type, Set<Type> parents) {
        if (parents.contains(type)) {
            throw new IllegalArgumentException("The record " + type.getName() + " contains itself, so no schema can be derived.");
        }
        Set<Type> inner = new LinkedHashSet<>(parents);
        inner.add(type);
        Map<String, Object> properties = new LinkedHashMap<>();
        List<String> required = new ArrayList<>();
        for (RecordShape.Component component : RecordShape.of(type).components) {
            Map<String, Object> property = derive(component.type(), inner);
            if (component.isOptional()) {
                property = nullable(property);
            } else {
                required.add(component.name());
            }
            if (component.description() != null) {
                property.put("description", component.description());
            }
            properties.put(component.name(), property);
        }
        Map<String, Object> schema = simple("object");
        String description = RecordShape.descriptionOf(type);
        if (description != null) {
            schema.put("description", description);
        }
        schema.put("properties", properties);
        schema.put("required", required);
        schema.put("additionalProperties", false);
        return schema;
    }

    private static Map<String, Object> simple(String type) {
        Map<String, Object> schema = new LinkedHashMap<>();
        schema.put("type", type);
        return schema;
    }

    private static Map<String, Object> listOf(Type items, Set<Type> parents) {
        Map<String, Object> schema = simple("array");
        schema.put("items", derive(items, parents));
        return schema;
    }

    private static Map<String, Object> nullable(Map<String, Object> schema) {
        if (schema.get("type") instanceof String type) {
            schema.put("type", List.of(type, "null"));
        }
        return schema;
    }

    /**
     * Fails at the first place at which a value does not fit.
     *
     * @throws JsonException with the place and the cause
     */
    public void check(@Nullable Object value) throws JsonException {
        check(tree, value, "");
    }

    private static void check(Map<?, ?> schema, @Nullable Object value, String at) throws JsonException {
        String kind = kindOf(value);
        Object type = schema.get("type");
        if (type != null && !allows(type, kind)) {
            throw new JsonException(Binder.place(at) + " is " + kind + " and must be " + describe(type) + ".");
        }
        if (value != null && schema.get("enum") instanceof List<?> constants && !constants.contains(value)) {
            throw new JsonException(Binder.place(at) + " must be one of " + constants + ".");
        }
        if (value instanceof List<?> items && schema.get("items") instanceof Map<?, ?> each) {
            for (int i = 0; i < items.size(); i++) {
                check(each, items.get(i), at + "/" + i);
            }
        }
        if (value instanceof Map<?, ?> fields) {
            checkFields(schema, fields, at);
        }
    }

    private static void checkFields(Map<?, ?> schema, Map<?, ?> fields, String at) throws JsonException {
        if (schema.get("required") instanceof List<?> required) {
            for (Object name : required) {
                if (!fields.containsKey(name)) {
                    throw new JsonException(Binder.place(at) + " lacks \"" + name + "\".");
                }
            }
        }
        for (Map.Entry<?, ?> field : fields.entrySet()) {
            Object property = schema.get("properties") instanceof Map<?, ?> properties ? properties.get(field.getKey()) : null;
            Object others = schema.get("additionalProperties");
            if (property == null && Boolean.FALSE.equals(others)) {
                throw new JsonException(Binder.place(at) + " has the unknown field \"" + field.getKey() + "\".");
            }
            if ((property != null ? property : others) instanceof Map<?, ?> expected) {
                check(expected, field.getValue(), at + "/" + field.getKey());
            }
        }
    }

    private static boolean allows(Object type, String kind) {
        if (type instanceof List<?> types) {
            return types.stream().anyMatch(each -> allows(each, kind));
        }
        return type.equals(kind) || (type.equals("number") && kind.equals("integer"));
    }

    private static String describe(Object type) {
        return type instanceof List<?> types ? String.join(" or ", types.stream().map(String::valueOf).toList()) : String.valueOf(type);
    }

    static String kindOf(@Nullable Object value) {
        if (value == null) {
            return "null";
        }
        if (value instanceof String) {
            return "string";
        }
        if (value instanceof Boolean) {
            return "boolean";
        }
        if (value instanceof Number number) {
            return isIntegral(number) ? "integer" : "number";
        }
        return value instanceof List<?> ? "array" : "object";
    }

    private static boolean isIntegral(Number number) {
        if (number instanceof Double value) {
            return value == Math.rint(value);
        }
        return !(number instanceof BigDecimal big) || big.stripTrailingZeros().scale() <= 0;
    }
}
