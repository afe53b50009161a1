package io.github.qwenagent.internal.hub;

import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** Writes whole lines in the order in which they were given, on a separate thread: no caller waits for a pipe that is full. */
final class LineWriter {
    /** A line that waits. */
    private static final class Line {
        private final byte[] bytes;
        private final CompletableFuture<Void> written = new CompletableFuture<>();

        Line(byte[] bytes) {
            this.bytes = bytes;
        }
    }

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition hasWork = lock.newCondition();
    private final Deque<Line> queue = new ArrayDeque<>();
    private boolean isClosed;
    private @Nullable IOException failure;

    /** Queues a line. The future completes once the line is in the pipe, or exceptionally if the pipe has failed. */
    CompletableFuture<Void> send(byte[] bytes) {
        Line line = new Line(bytes);
        enqueue(line);
        return line.written;
    }

    /** Queues a line. */
    void post(byte[] bytes) {
        enqueue(new Line(bytes));
    }

    private void enqueue(Line line) {
        lock.lock();
        try {
            if (failure != null) {
                line.written.completeExceptionally(failure);
            } else if (isClosed) {
                line.written.completeExceptionally(new IOException("The input of the hub is closed."));
            } else {
                queue.add(line);
                hasWork.signal();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Ends the input once all queued lines are written. */
    void close() {
        lock.lock();
        try {
            isClosed = true;
            hasWork.signal();
        } finally {
            lock.unlock();
        }
    }

    /** Fails all lines that wait and all further ones. */
    void fail(IOException cause) {
        Deque<Line> lost;
        lock.lock();
        try {
            if (failure == null) {
                failure = cause;
            }
            lost = new ArrayDeque<>(queue);
            queue.clear();
            hasWork.signal();
        } finally {
            lock.unlock();
        }
        lost.forEach(line -> line.written.completeExceptionally(cause));
    }

    /** Writes until the writer is closed or has failed. */
    void run(OutputStream pipe) {
        Line current = null;
        try (pipe) {
            for (current = next(); current != null; current = next()) {
                pipe.write(current.bytes);
                if (isIdle()) {
                    pipe.flush();
                }
                current.written.complete(null);
            }
        } catch (IOException e) {
            fail(e);
            if (current != null) {
                current.written.completeExceptionally(e);
            }
        }
    }

    private boolean isIdle() {
        lock.lock();
        try {
            return queue.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    private @Nullable Line next() {
        lock.lock();
        try {
            while (queue.isEmpty() && !isClosed && failure == null) {
                hasWork.awaitUninterruptibly();
            }
            return failure == null ? queue.poll() : null;
        } finally {
            lock.unlock();
        }
    }
}
