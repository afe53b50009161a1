/** Brings the qwen program along. The artifacts with the classifier of a platform contain it. */
module io.github.qwenagent.runtime {
    requires io.github.qwenagent;
    requires static org.jspecify;

    provides io.github.qwenagent.Binary.Provider with io.github.qwenagent.runtime.ResourceProvider;
}
