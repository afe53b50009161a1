package io.github.qwenagent;

import org.jspecify.annotations.Nullable;

/** Answers the JSON-RPC messages that one session sends to a server of another library in this process. */
public interface McpConnection extends AutoCloseable {
    /**
     * Answers a message. The thread is interrupted when the answer is no longer needed.
     *
     * @param message the message
     * @return the answer; null for a notification
     * @throws Exception a failure
     */
    @Nullable Json handle(Json message) throws Exception;

    /** Ends the connection with its session. */
    @Override
    void close();
}
