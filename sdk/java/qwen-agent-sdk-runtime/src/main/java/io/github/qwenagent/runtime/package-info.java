/** Brings the qwen program along, so that nothing has to be installed. */
@NullMarked
package io.github.qwenagent.runtime;

import org.jspecify.annotations.NullMarked;
