package io.github.qwenagent;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The messages of a turn or an attachment until they are read. The reader of the hub's output fills it and never waits; with
 * too much in it, the session's worker is paused.
 */
final class MessageQueue {
    private static final int HIGH_WATER = 4 << 20;
    private static final int LOW_WATER = 1 << 20;
    /** Estimates the memory of a message besides its line. */
    private static final int MESSAGE_COST = 256;

    /** Called with true when the queue holds too much, and with false when there is room again. */
    private final Consumer<Boolean> onFull;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition hasChanged = lock.newCondition();
    private List<Message> items = new ArrayList<>();
    private int bytes;
    private int bytesInHand;
    private boolean isFull;
    private boolean isEnded;
    /** Thrown once all messages are read; null after a complete turn. */
    private @Nullable Supplier<? extends RuntimeException> failure;

    MessageQueue(Consumer<Boolean> onFull) {
        this.onFull = onFull;
    }

    /** Adds a message. It is dropped if the queue has ended. */
    void push(Message message) {
        boolean isNowFull;
        lock.lock();
        try {
            if (isEnded) {
                return;
            }
            items.add(message);
            bytes += message.meta().size() + MESSAGE_COST;
            isNowFull = !isFull && bytes + bytesInHand > HIGH_WATER;
            isFull |= isNowFull;
            hasChanged.signal();
        } finally {
            lock.unlock();
        }
        if (isNowFull) {
            onFull.accept(true);
        }
    }

    /** Ends the queue after the messages that are in it. Only the first end counts. */
    void end(@Nullable Supplier<? extends RuntimeException> cause) {
        lock.lock();
        try {
            if (!isEnded) {
                isEnded = true;
                failure = cause;
            }
            hasChanged.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Ends the queue and forgets what is in it. */
    void drop() {
        boolean wasFull;
        lock.lock();
        try {
            if (!isEnded) {
                failure = QwenException.Closed::new;
            }
            isEnded = true;
            items = new ArrayList<>();
            bytes = 0;
            bytesInHand = 0;
            wasFull = isFull;
            isFull = false;
            hasChanged.signalAll();
        } finally {
            lock.unlock();
        }
        if (wasFull) {
            onFull.accept(false);
        }
    }

    /** Returns whether {@link #take} would not wait. */
    boolean isReady() {
        lock.lock();
        try {
            return isEnded || !items.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Returns all messages that are in the queue and waits if there are none. At the end it returns no messages, or throws the
     * cause.
     */
    List<Message> take() throws InterruptedException {
        lock.lockInterruptibly();
        try {
            while (true) {
                bytesInHand = 0;
                if (!items.isEmpty()) {
                    List<Message> batch = items;
                    bytesInHand = bytes;
                    items = new ArrayList<>();
                    bytes = 0;
                    return batch;
                }
                if (isFull && bytes <= LOW_WATER) {
                    isFull = false;
                    lock.unlock();
                    try {
                        onFull.accept(false);
                    } finally {
                        lock.lock();
                    }
                    continue;
                }
                if (isEnded) {
                    if (failure != null) {
                        throw failure.get();
                    }
                    return List.of();
                }
                hasChanged.await();
            }
        } finally {
            lock.unlock();
        }
    }
}
