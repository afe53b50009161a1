package io.github.qwenagent;

import io.github.qwenagent.internal.threads.Threads;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/** A future whose cancellation interrupts the thread that works on it. */
final class RunningTurn extends CompletableFuture<Result> {
    private final Thread thread;

    RunningTurn(Supplier<Result> work) {
        thread = Threads.create("qwen-run", () -> {
            try {
                complete(work.get());
            } catch (RuntimeException | Error e) {
                completeExceptionally(e);
            }
        });
        thread.start();
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        boolean isCancelled = super.cancel(mayInterruptIfRunning);
        if (isCancelled) {
            thread.interrupt();
        }
        return isCancelled;
    }
}
