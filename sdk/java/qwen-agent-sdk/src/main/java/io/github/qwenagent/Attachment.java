package io.github.qwenagent;

import io.github.qwenagent.internal.hub.Envelope;
import io.github.qwenagent.internal.threads.Interruptions;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.function.Supplier;

/**
 * All numbered messages of a session: those after a number, delivered before or not, and then all that follow, of every turn.
 * The iteration ends when the session does, with an exception. It is read once, by one thread.
 */
public final class Attachment implements Iterable<Message>, AutoCloseable {
    private final Session session;
    private final MessageQueue queue;
    private final Map<String, TurnReader> readers = new HashMap<>();
    /** The number of the last line that was read. Numbers have no gaps: a line with another number than the next will come again. */
    private long last;

    Attachment(Session session, long after) {
        this.session = session;
        this.last = after;
        this.queue = new MessageQueue(session::setFull);
    }

    /** Returns the messages. */
    @Override
    public Iterator<Message> iterator() {
        return new Iterator<>() {
            private List<Message> batch = List.of();
            private int next;

            @Override
            public boolean hasNext() {
                if (next < batch.size()) {
                    return true;
                }
                try {
                    batch = queue.take();
                } catch (InterruptedException e) {
                    close();
                    throw Interruptions.restore("The attachment was interrupted.");
                }
                next = 0;
                return !batch.isEmpty();
            }

            @Override
            public Message next() {
                if (!hasNext()) {
                    throw new NoSuchElementException();
                }
                return batch.get(next++);
            }
        };
    }

    /** Ends the attachment. The session continues. */
    @Override
    public void close() {
        session.detach(this);
        queue.drop();
    }

    void end(Supplier<QwenException> cause) {
        queue.end(cause);
    }

    /** Begins the numbers again: the session continues in a fork. */
    void restart() {
        last = 0;
    }

    boolean skip(long seq) {
        if (seq != last + 1) {
            return false;
        }
        last = seq;
        return true;
    }

    private TurnReader reader(String promptId) {
        return readers.computeIfAbsent(promptId, id -> new TurnReader());
    }

    void acceptText(Message.Meta meta, String text) {
        if (skip(meta.seq())) {
            queue.push(reader(meta.promptId()).piece(meta, text));
        }
    }

    void accept(Message.Meta meta, Envelope envelope) {
        if (!skip(meta.seq())) {
            return;
        }
        for (Message message : reader(meta.promptId()).read(meta, envelope)) {
            if (message instanceof Result) {
                readers.remove(meta.promptId());
            }
            queue.push(message);
        }
    }
}
