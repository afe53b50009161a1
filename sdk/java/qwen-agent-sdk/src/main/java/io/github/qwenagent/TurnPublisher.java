package io.github.qwenagent;

import io.github.qwenagent.internal.threads.Threads;
import java.util.Iterator;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Publishes the items of a blocking iterator to one subscriber, on one thread and no faster than they are requested. */
final class TurnPublisher implements Flow.Publisher<Message> {
    private final Iterator<Message> source;
    private final Runnable onCancel;
    /** Called with this publisher when its subscriber has been told of the end. */
    private final Consumer<TurnPublisher> onEnd;
    private final String name;
    private final AtomicReference<@Nullable Delivery> delivery = new AtomicReference<>();

    TurnPublisher(Iterator<Message> source, Runnable onCancel, Consumer<TurnPublisher> onEnd, String name) {
        this.source = source;
        this.onCancel = onCancel;
        this.onEnd = onEnd;
        this.name = name;
    }

    /** Ends the delivery to a subscriber that requests nothing more: the session is closed. */
    void end() {
        Delivery started = delivery.get();
        if (started != null) {
            started.end();
        }
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Message> subscriber) {
        if (subscriber == null) {
            throw new NullPointerException("There is no subscriber.");
        }
        Delivery started = new Delivery(subscriber);
        if (!delivery.compareAndSet(null, started)) {
            subscriber.onSubscribe(new Refused());
            subscriber.onError(new IllegalStateException("A turn has one subscriber. Call stream again for another turn."));
            return;
        }
        subscriber.onSubscribe(started);
        Threads.create(name, started::run).start();
    }

    /** The subscription of a subscriber that gets nothing. */
    private static final class Refused implements Flow.Subscription {
        @Override
        public void request(long count) {
            // There is nothing to request.
        }

        @Override
        public void cancel() {
            // There is nothing to cancel.
        }
    }

    /** The subscription and the loop that serves it. */
    private final class Delivery implements Flow.Subscription {
        private final ReentrantLock lock = new ReentrantLock();
        private final Condition hasChanged = lock.newCondition();
        private Flow.@Nullable Subscriber<? super Message> subscriber;
        private long demand;
        private boolean isCancelled;
        private boolean isEnded;
        private @Nullable IllegalArgumentException violation;

        Delivery(Flow.Subscriber<? super Message> subscriber) {
            this.subscriber = subscriber;
        }

        @Override
        public void request(long count) {
            lock.lock();
            try {
                if (count <= 0) {
                    violation = new IllegalArgumentException("The subscriber requested " + count + " messages; rule 3.9 requires more than 0.");
                } else {
                    demand = demand + count < 0 ? Long.MAX_VALUE : demand + count;
                }
                hasChanged.signal();
            } finally {
                lock.unlock();
            }
            if (count <= 0) {
                // The source may be waiting for a message. The violation is noted before: it is what the subscriber gets.
                onCancel.run();
            }
        }

        @Override
        public void cancel() {
            lock.lock();
            try {
                if (isCancelled) {
                    return;
                }
                isCancelled = true;
                hasChanged.signal();
            } finally {
                lock.unlock();
            }
            onCancel.run();
        }

        void end() {
            lock.lock();
            try {
                isEnded = true;
                hasChanged.signal();
            } finally {
                lock.unlock();
            }
        }

        /** Waits for demand; false once the subscription is cancelled or broken. */
        private boolean awaitDemand() throws InterruptedException {
            lock.lock();
            try {
                while (demand == 0 && !isCancelled && !isEnded && violation == null) {
                    hasChanged.await();
                }
                if (isCancelled || violation != null || demand == 0) {
                    return false;
                }
                demand = demand == Long.MAX_VALUE ? demand : demand - 1;
                return true;
            } finally {
                lock.unlock();
            }
        }

        private boolean isOpen() {
            lock.lock();
            try {
                return !isCancelled && violation == null;
            } finally {
                lock.unlock();
            }
        }

        void run() {
            Flow.Subscriber<? super Message> target = subscriber;
            if (target == null) {
                return;
            }
            try {
                deliver(target);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            } finally {
                // Rule 3.13: no reference to a subscriber that has cancelled.
                subscriber = null;
                onCancel.run();
                onEnd.accept(TurnPublisher.this);
            }
        }

        private void deliver(Flow.Subscriber<? super Message> target) throws InterruptedException {
            while (true) {
                boolean hasNext;
                try {
                    hasNext = isOpen() && source.hasNext();
                } catch (RuntimeException e) {
                    fail(target, e);
                    return;
                }
                if (isOpen() && !hasNext) {
                    target.onComplete();
                    return;
                }
                if (!awaitDemand()) {
                    fail(target, null);
                    return;
                }
                Message message;
                try {
                    message = source.next();
                } catch (RuntimeException e) {
                    fail(target, e);
                    return;
                }
                target.onNext(message);
            }
        }

        /** Reports the subscriber's violation or a failure of the source, unless the subscriber has cancelled. */
        private void fail(Flow.Subscriber<? super Message> target, @Nullable RuntimeException failure) {
            RuntimeException cause;
            lock.lock();
            try {
                cause = isCancelled ? null : violation != null ? violation : failure != null ? failure : new QwenException.Closed();
            } finally {
                lock.unlock();
            }
            if (cause != null) {
                target.onError(cause);
            }
        }
    }
}
