package io.github.qwenagent.internal.threads;

import io.github.qwenagent.QwenException;

/** Turns interruption into an unchecked exception. */
public final class Interruptions {
    private Interruptions() {}

    /** Sets the thread's interrupt status again and returns the exception to throw. */
    public static QwenException.Interrupted restore(String message) {
        Thread.currentThread().interrupt();
        return new QwenException.Interrupted(message);
    }
}
