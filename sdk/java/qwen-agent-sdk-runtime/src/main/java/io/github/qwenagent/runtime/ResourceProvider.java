package io.github.qwenagent.runtime;

import io.github.qwenagent.Binary;
import java.io.InputStream;
import org.jspecify.annotations.Nullable;

/** Provides the program of the artifact of this platform, whose classifier is the platform's name. */
public final class ResourceProvider implements Binary.Provider {
    /** Creates the provider, which the SDK does by itself. */
    public ResourceProvider() {}

    @Override
    public @Nullable InputStream open(String platform) {
        return ResourceProvider.class.getClassLoader().getResourceAsStream("META-INF/qwen-agent-sdk/" + platform + "/qwen");
    }
}
