package io.github.qwenagent;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** The name of a record's component or of an enum's constant in JSON, where it differs from the name in Java. */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.RECORD_COMPONENT, ElementType.FIELD})
public @interface Named {
    /**
     * Returns the name.
     *
     * @return the name in JSON
     */
    String value();
}
