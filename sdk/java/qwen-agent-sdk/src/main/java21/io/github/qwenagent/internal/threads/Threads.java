package io.github.qwenagent.internal.threads;

/** Makes the threads of callbacks: virtual ones. */
public final class Threads {
    private Threads() {}

    /** Returns a thread that is not started. */
    public static Thread create(String name, Runnable task) {
        return Thread.ofVirtual().name(name).unstarted(task);
    }
}
