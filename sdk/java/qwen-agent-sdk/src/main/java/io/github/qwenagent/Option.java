package io.github.qwenagent;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The name of an option of a session. The type parameter is the type of its value. */
@SuppressWarnings("UnusedTypeParameter")
final class Option<T> {
    static final Option<String> ID = new Option<>();
    static final Option<String> AT = new Option<>();
    static final Option<String> MODEL = new Option<>();
    static final Option<Path> CWD = new Option<>();
    static final Option<String> SYSTEM_PROMPT = new Option<>();
    static final Option<String> APPEND_SYSTEM_PROMPT = new Option<>();
    static final Option<PermissionMode> PERMISSION_MODE = new Option<>();
    static final Option<List<String>> ALLOWED_TOOLS = new Option<>();
    static final Option<List<String>> ASK_TOOLS = new Option<>();
    static final Option<List<String>> DISALLOWED_TOOLS = new Option<>();
    static final Option<String> POLICY_DESCRIPTION = new Option<>();
    static final Option<List<String>> CORE_TOOLS = new Option<>();
    static final Option<List<Path>> ADDITIONAL_DIRECTORIES = new Option<>();
    static final Option<String> AGENT = new Option<>();
    static final Option<Map<String, Agent>> AGENTS = new Option<>();
    static final Option<List<ToolServer>> TOOLS = new Option<>();
    static final Option<CanUseTool> CAN_USE_TOOL = new Option<>();
    static final Option<List<RegisteredHook>> HOOKS = new Option<>();
    static final Option<List<SettingSource>> SETTING_SOURCES = new Option<>();
    static final Option<Map<String, ?>> SETTINGS = new Option<>();
    static final Option<SettingsProfile> SETTINGS_PROFILE = new Option<>();
    static final Option<Limits> LIMITS = new Option<>();
    static final Option<Map<String, String>> ENV = new Option<>();
    static final Option<List<String>> UNSET_ENV = new Option<>();
    static final Option<OnCrash> ON_CRASH = new Option<>();
    static final Option<String> EFFORT = new Option<>();
    static final Option<String> TENANT = new Option<>();
    static final Option<Boolean> NUMBERED = new Option<>();
    static final Option<List<String>> EXTRA_ARGS = new Option<>();

    private Option() {}

    /** The options of a session that are set. */
    static final class Values {
        private final Map<Option<?>, Object> set = new HashMap<>();

        @SuppressWarnings("unchecked")
        <T> @Nullable T get(Option<T> option) {
            return (T) set.get(option);
        }

        <T> T get(Option<T> option, T otherwise) {
            T value = get(option);
            return value == null ? otherwise : value;
        }

        <T> void put(Option<T> option, T value) {
            set.put(option, value);
        }

        void remove(Option<?> option) {
            set.remove(option);
        }

        Values copy() {
            Values copy = new Values();
            copy.set.putAll(set);
            return copy;
        }

        /** Returns these options on top of others. Environment and agents are merged, and a session's id is its own. */
        Values over(Values base) {
            Values merged = base.copy();
            merged.set.putAll(set);
            merged.put(ENV, mergeMaps(base.get(ENV), get(ENV)));
            merged.put(AGENTS, mergeMaps(base.get(AGENTS), get(AGENTS)));
            return merged;
        }

        private static <V> Map<String, V> mergeMaps(@Nullable Map<String, V> base, @Nullable Map<String, V> over) {
            Map<String, V> merged = new LinkedHashMap<>(base == null ? Map.of() : base);
            merged.putAll(over == null ? Map.of() : over);
            return merged;
        }
    }
}
