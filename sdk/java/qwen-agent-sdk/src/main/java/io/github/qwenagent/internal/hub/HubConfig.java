package io.github.qwenagent.internal.hub;

import java.lang.System.Logger;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** How a hub is started. */
public record HubConfig(Path program, List<String> arguments, Map<String, String> environment, @Nullable Path directory,
        Duration startTimeout, Logger logger) {}
