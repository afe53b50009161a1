package io.github.qwenagent;

import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * Keeps sessions besides the local disk. A session is an append-only text of JSON lines. Lines are appended before the result
 * of a turn is delivered, so what the host has seen is stored. Calls for one session never overlap.
 */
public interface SessionStore {
    /**
     * Returns the whole text of a session.
     *
     * @param sessionId the session
     * @return the text; null if the store does not have the session
     * @throws IOException if the store fails
     */
    byte @Nullable [] load(String sessionId) throws IOException;

    /**
     * Adds whole lines to the text of a session, which begins empty.
     *
     * @param sessionId the session
     * @param lines the lines
     * @throws IOException if the store fails
     */
    void append(String sessionId, byte[] lines) throws IOException;
}
