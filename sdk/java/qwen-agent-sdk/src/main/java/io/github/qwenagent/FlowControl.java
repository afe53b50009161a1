package io.github.qwenagent;

import java.util.function.Consumer;

/** Decides when a session's worker is paused: while a queue holds too much and no answer is awaited. */
final class FlowControl {
    private final Consumer<Boolean> post;
    /** Counts the queues that hold too much. */
    private int full;
    /** Counts the requests whose answers come after the lines that wait, so that a paused worker could not give them. */
    private int asked;
    private boolean isPaused;

    /** Creates a control that passes on when the worker is to be paused (true) or resumed (false). */
    FlowControl(Consumer<Boolean> post) {
        this.post = post;
    }

    synchronized void changeFull(int change) {
        full += change;
        apply();
    }

    synchronized void changeAsked(int change) {
        asked += change;
        apply();
    }

    private void apply() {
        boolean isWanted = full > 0 && asked == 0;
        if (isWanted != isPaused) {
            isPaused = isWanted;
            post.accept(isWanted);
        }
    }
}
