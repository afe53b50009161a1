/**
 * Embeds the `qwen` coding agent in Java programs. Start with {@link io.github.qwenagent.AgentManager#open}.
 */
@NullMarked
package io.github.qwenagent;

import org.jspecify.annotations.NullMarked;
