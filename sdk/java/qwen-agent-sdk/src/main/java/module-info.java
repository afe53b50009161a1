/** The Java SDK of the `qwen` coding agent. */
module io.github.qwenagent {
    requires static org.jspecify;

    exports io.github.qwenagent;

    uses io.github.qwenagent.Binary.Provider;
}
