package io.github.qwenagent;

import java.util.Locale;

/** A settings file that counts. By default none does. */
public enum SettingSource {
    /** The user's settings. */
    USER,
    /** The settings of the project. */
    PROJECT,
    /** The local settings of the project. */
    LOCAL;

    /** Returns the source as the protocol spells it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
