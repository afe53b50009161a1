package io.github.qwenagent;

import java.lang.System.Logger;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** The options of a manager, and the defaults of its sessions. */
public final class AgentOptions {
    final Option.Values session;
    final @Nullable Path binaryPath;
    final Pool pool;
    final @Nullable SessionStore store;
    final Timeouts timeouts;
    final Logger logger;
    final Telemetry telemetry;

    private AgentOptions(Builder builder) {
        session = builder.values.copy();
        binaryPath = builder.binaryPath;
        pool = builder.pool;
        store = builder.store;
        timeouts = builder.timeouts;
        Logger given = builder.logger;
        logger = given == null ? System.getLogger("io.github.qwenagent") : given;
        telemetry = builder.telemetry;
    }

    /**
     * Returns a builder without options.
     *
     * @return the builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Returns options that set nothing.
     *
     * @return the options
     */
    public static AgentOptions defaults() {
        return builder().build();
    }

    /** Sets the options of a manager. */
    public static final class Builder extends OptionsBuilder<Builder> {
        private @Nullable Path binaryPath;
        private Pool pool = Pool.defaults();
        private @Nullable SessionStore store;
        private Timeouts timeouts = Timeouts.defaults();
        private @Nullable Logger logger;
        private Telemetry telemetry = Telemetry.NONE;

        private Builder() {}

        @Override
        Builder self() {
            return this;
        }

        /**
         * Sets the qwen program.
         *
         * @param path the program; by default QWEN_BIN, then the one of qwen-agent-sdk-runtime, then PATH
         * @return this builder
         */
        public Builder binaryPath(Path path) {
            binaryPath = path;
            return this;
        }

        /**
         * Bounds the workers.
         *
         * @param pool the bounds
         * @return this builder
         */
        public Builder pool(Pool pool) {
            this.pool = pool;
            return this;
        }

        /**
         * Keeps sessions besides the local disk.
         *
         * @param store the store
         * @return this builder
         */
        public Builder sessionStore(SessionStore store) {
            this.store = store;
            return this;
        }

        /**
         * Sets the time-outs.
         *
         * @param timeouts the time-outs
         * @return this builder
         */
        public Builder timeouts(Timeouts timeouts) {
            this.timeouts = timeouts;
            return this;
        }

        /**
         * Sets the logger for records of the SDK, the hub and the workers.
         *
         * @param logger the logger; the one named `io.github.qwenagent` by default
         * @return this builder
         */
        public Builder logger(Logger logger) {
            this.logger = logger;
            return this;
        }

        /**
         * Traces turns and tools.
         *
         * @param telemetry the adapter of a tracer
         * @return this builder
         */
        public Builder telemetry(Telemetry telemetry) {
            this.telemetry = telemetry;
            return this;
        }

        /**
         * Returns the options.
         *
         * @return the options
         */
        public AgentOptions build() {
            return new AgentOptions(this);
        }
    }
}
