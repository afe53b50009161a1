package io.github.qwenagent;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A sub-agent that the model may start.
 *
 * @param description what it is for, which the model reads
 * @param prompt its instructions
 * @param tools the only tools that it may use; null for all of the main agent's
 * @param model its model; null for that of the main agent
 */
public record Agent(String description, String prompt, @Nullable List<String> tools, @Nullable String model) {
    /**
     * Returns an agent with the tools and the model of the main agent.
     *
     * @param description what it is for, which the model reads
     * @param prompt its instructions
     * @return the agent
     */
    public static Agent of(String description, String prompt) {
        return new Agent(description, prompt, null, null);
    }

    Map<String, Object> wire() {
        Map<String, Object> wire = new LinkedHashMap<>();
        wire.put("description", description);
        wire.put("prompt", prompt);
        if (tools != null) {
            wire.put("tools", tools);
        }
        if (model != null) {
            wire.put("model", model);
        }
        return wire;
    }
}
