package io.github.qwenagent.internal.hub;

import io.github.qwenagent.QwenException;
import java.util.function.Supplier;

/** Gets the lines of one session. Its methods are called one after the other and must not block. */
public interface HubReceiver {
    /** Gets a line that carries nothing but a piece of text. */
    void text(String promptId, String text, long seq, byte[] line);

    /** Gets every other line. */
    void line(Envelope envelope, byte[] line);

    /** Reports that the hub is gone. */
    void lost(Supplier<QwenException> cause);
}
