package io.github.qwenagent;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** Describes a component of a record to the model, in the schema of a tool's arguments or of a typed result. */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.RECORD_COMPONENT, ElementType.TYPE})
public @interface Description {
    /**
     * Returns the description.
     *
     * @return the description
     */
    String value();
}
