package io.github.qwenagent;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A whole set of settings. It takes the place of all settings files, and of variables of the host that choose model, server or
 * keys. A layer is a map or the path of a file; null is an empty one.
 *
 * @param system the settings of the system
 * @param systemDefaults the defaults of the system
 * @param user the settings of the user
 * @param workspace the settings of the workspace
 * @param overrides single values by dotted key, such as `model.name`
 */
public record SettingsProfile(@Nullable Object system, @Named("system_defaults") @Nullable Object systemDefaults,
        @Nullable Object user, @Nullable Object workspace, Map<String, ?> overrides) {
    /**
     * Returns a profile of single values.
     *
     * @param overrides values by dotted key, such as `model.name`
     * @return the profile
     */
    public static SettingsProfile of(Map<String, ?> overrides) {
        return new SettingsProfile(null, null, null, null, overrides);
    }

    Map<String, @Nullable Object> wire() {
        Map<String, @Nullable Object> wire = new LinkedHashMap<>();
        wire.put("system", system);
        wire.put("system_defaults", systemDefaults);
        wire.put("user", user);
        wire.put("workspace", workspace);
        wire.values().removeIf(Objects::isNull);
        wire.put("overrides", overrides);
        return wire;
    }
}
