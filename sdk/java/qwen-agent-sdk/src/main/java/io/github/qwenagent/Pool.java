package io.github.qwenagent;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Bounds of the hub's workers. 0 and null are the hub's defaults.
 *
 * @param minWorkers workers that are kept ready, which fit only sessions without options
 * @param maxWorkers workers at once
 * @param idleTimeout the time that a session rests before its worker is released
 * @param maxSessionsPerWorker sessions that a worker serves, one after the other
 * @param healthCheckInterval the time between two checks of idle workers
 * @param heartbeatInterval the time between two signs of life
 * @param heartbeatTimeout the time that a worker may be silent before it counts as dead
 * @param maxQueue prompts that wait for a worker
 * @param queueTimeout the time that a prompt waits for a worker
 */
public record Pool(int minWorkers, int maxWorkers, @Nullable Duration idleTimeout, int maxSessionsPerWorker,
        @Nullable Duration healthCheckInterval, @Nullable Duration heartbeatInterval,
        @Nullable Duration heartbeatTimeout, int maxQueue, @Nullable Duration queueTimeout) {
    /**
     * Returns a pool with the hub's defaults.
     *
     * @return the pool
     */
    public static Pool defaults() {
        return new Pool(0, 0, null, 0, null, null, null, 0, null);
    }

    /**
     * Returns a pool of at most this many workers.
     *
     * @param maxWorkers workers at once
     * @return the pool
     */
    public static Pool ofMax(int maxWorkers) {
        return defaults().withMaxWorkers(maxWorkers);
    }

    /**
     * Returns a copy with another value: workers that are kept ready, which fit only sessions without options.
     *
     * @param value workers that are kept ready, which fit only sessions without options
     * @return the copy
     */
    public Pool withMinWorkers(int value) {
        return new Pool(value, maxWorkers, idleTimeout, maxSessionsPerWorker,
                healthCheckInterval, heartbeatInterval, heartbeatTimeout, maxQueue, queueTimeout);
    }

    /**
     * Returns a copy with another value: workers at once.
     *
     * @param value workers at once
     * @return the copy
     */
    public Pool withMaxWorkers(int value) {
        return new Pool(minWorkers, value, idleTimeout, maxSessionsPerWorker,
                healthCheckInterval, heartbeatInterval, heartbeatTimeout, maxQueue, queueTimeout);
    }

    /**
     * Returns a copy with another value: the time that a session rests before its worker is released.
     *
     * @param value the time that a session rests before its worker is released
     * @return the copy
     */
    public Pool withIdleTimeout(Duration value) {
        return new Pool(minWorkers, maxWorkers, value, maxSessionsPerWorker,
                healthCheckInterval, heartbeatInterval, heartbeatTimeout, maxQueue, queueTimeout);
    }

    /**
     * Returns a copy with another value: sessions that a worker serves, one after the other.
     *
     * @param value sessions that a worker serves, one after the other
     * @return the copy
     */
    public Pool withMaxSessionsPerWorker(int value) {
        return new Pool(minWorkers, maxWorkers, idleTimeout, value,
                healthCheckInterval, heartbeatInterval, heartbeatTimeout, maxQueue, queueTimeout);
    }

    /**
     * Returns a copy with another value: the time between two checks of idle workers.
     *
     * @param value the time between two checks of idle workers
     * @return the copy
     */
    public Pool withHealthCheckInterval(Duration value) {
        return new Pool(minWorkers, maxWorkers, idleTimeout, maxSessionsPerWorker,
                value, heartbeatInterval, heartbeatTimeout, maxQueue, queueTimeout);
    }

    /**
     * Returns a copy with another value: the time between two signs of life.
     *
     * @param value the time between two signs of life
     * @return the copy
     */
    public Pool withHeartbeatInterval(Duration value) {
        return new Pool(minWorkers, maxWorkers, idleTimeout, maxSessionsPerWorker,
                healthCheckInterval, value, heartbeatTimeout, maxQueue, queueTimeout);
    }

    /**
     * Returns a copy with another value: the time that a worker may be silent before it counts as dead.
     *
     * @param value the time that a worker may be silent before it counts as dead
     * @return the copy
     */
    public Pool withHeartbeatTimeout(Duration value) {
        return new Pool(minWorkers, maxWorkers, idleTimeout, maxSessionsPerWorker,
                healthCheckInterval, heartbeatInterval, value, maxQueue, queueTimeout);
    }

    /**
     * Returns a copy with another value: prompts that wait for a worker.
     *
     * @param value prompts that wait for a worker
     * @return the copy
     */
    public Pool withMaxQueue(int value) {
        return new Pool(minWorkers, maxWorkers, idleTimeout, maxSessionsPerWorker,
                healthCheckInterval, heartbeatInterval, heartbeatTimeout, value, queueTimeout);
    }

    /**
     * Returns a copy with another value: the time that a prompt waits for a worker.
     *
     * @param value the time that a prompt waits for a worker
     * @return the copy
     */
    public Pool withQueueTimeout(Duration value) {
        return new Pool(minWorkers, maxWorkers, idleTimeout, maxSessionsPerWorker,
                healthCheckInterval, heartbeatInterval, heartbeatTimeout, maxQueue, value);
    }
}
