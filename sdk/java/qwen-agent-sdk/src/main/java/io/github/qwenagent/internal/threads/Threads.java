package io.github.qwenagent.internal.threads;

/** Makes the threads of callbacks: daemon threads, and virtual ones where there are any (see the folder java21). */
public final class Threads {
    private Threads() {}

    /** Returns a thread that is not started. */
    public static Thread create(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        return thread;
    }
}
