package io.github.qwenagent.internal.json;

import io.github.qwenagent.Description;
import io.github.qwenagent.Named;
import java.lang.annotation.Annotation;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Constructor;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/** The components of a record type and their names in JSON. */
final class RecordShape {
    private static final ClassValue<RecordShape> SHAPES = new ClassValue<>() {
        @Override
        protected RecordShape computeValue(Class<?> type) {
            return new RecordShape(type);
        }
    };

    /** A component of a record. An optional one may be absent or null. */
    record Component(String name, Type type, boolean isOptional, @Nullable String description, Method accessor) {}

    final List<Component> components;
    private final Class<?> type;
    private final Constructor<?> constructor;

    private RecordShape(Class<?> type) {
        this.type = type;
        List<Component> found = new ArrayList<>();
        RecordComponent[] declared = type.getRecordComponents();
        try {
            for (RecordComponent component : declared) {
                Method accessor = component.getAccessor();
                accessor.setAccessible(true);
                found.add(new Component(nameOf(component, component.getName()), component.getGenericType(), isOptional(component),
                        descriptionOf(component), accessor));
            }
            constructor = type.getDeclaredConstructor(Arrays.stream(declared).map(RecordComponent::getType).toArray(Class[]::new));
            constructor.setAccessible(true);
        } catch (InaccessibleObjectException e) {
            throw new IllegalArgumentException("Cannot read the record " + type.getName() + ": its module does not open the package "
                    + type.getPackageName() + " to the module " + RecordShape.class.getModule().getName() + ". Add `opens "
                    + type.getPackageName() + ";` to its module-info.java.", e);
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException(e);
        }
        components = List.copyOf(found);
    }

    /** Returns the shape of a record type. */
    static RecordShape of(Class<?> type) {
        return SHAPES.get(type);
    }

    /** Returns the name of a component or a constant in JSON. */
    static String nameOf(AnnotatedElement element, String javaName) {
        Named named = element.getAnnotation(Named.class);
        return named == null ? javaName : named.value();
    }

    static @Nullable String descriptionOf(AnnotatedElement element) {
        Description description = element.getAnnotation(Description.class);
        return description == null ? null : description.value();
    }

    /** A component is optional if its type is, or if it has any annotation named Nullable. */
    private static boolean isOptional(RecordComponent component) {
        Class<?> type = component.getType();
        return type == Optional.class || type == OptionalInt.class || type == OptionalLong.class || type == OptionalDouble.class
                || hasNullable(component.getAnnotations()) || hasNullable(component.getAnnotatedType().getAnnotations());
    }

    private static boolean hasNullable(Annotation[] annotations) {
        return Arrays.stream(annotations).anyMatch(each -> each.annotationType().getSimpleName().equals("Nullable"));
    }

    /** Returns a record with these values of its components. A compact constructor may refuse them. */
    Object create(@Nullable Object[] values) throws JsonException {
        try {
            return constructor.newInstance(values);
        } catch (InvocationTargetException e) {
            throw new JsonException(type.getSimpleName() + " refuses the value: " + e.getCause().getMessage());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Returns the components of a record by name. Absent optionals are left out. */
    Map<String, @Nullable Object> values(Object instance) {
        Map<String, @Nullable Object> values = new LinkedHashMap<>();
        for (Component component : components) {
            Object value;
            try {
                value = component.accessor.invoke(instance);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException("Cannot read " + component.name + " of " + type.getName() + ".", e);
            }
            Object tree = Binder.toTree(value);
            if (tree != null || !component.isOptional) {
                values.put(component.name, tree);
            }
        }
        return values;
    }
}
