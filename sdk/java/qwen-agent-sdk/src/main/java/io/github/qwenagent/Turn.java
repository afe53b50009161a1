package io.github.qwenagent;

import io.github.qwenagent.internal.hub.Envelope;
import io.github.qwenagent.internal.json.Fields;
import io.github.qwenagent.internal.threads.Interruptions;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A prompt and the messages that come of it, the {@link Result} last. It is read once, as an iterable or as a publisher. The
 * iteration waits for messages; interrupting the thread ends the turn and throws {@link QwenException.Interrupted}. Closing it
 * before its end interrupts the turn and frees everything that belongs to it; the session continues.
 */
public final class Turn implements Iterable<Message>, AutoCloseable {
    /** Errors of the model in a turn without another line are not refusals. */
    private static final Set<String> MODEL_ERRORS = Set.of("api_error", "connection_error", "timeout_error");

    private final Session session;
    private final String promptId;
    private final MessageQueue queue;
    private final Telemetry.TurnSpan span;
    private final AtomicBoolean isUsed = new AtomicBoolean();
    private final AtomicBoolean isInterrupted = new AtomicBoolean();
    private final AtomicBoolean isSettled = new AtomicBoolean();
    private volatile boolean isCancelled;
    private volatile boolean hasJoined;
    private final boolean isSteering;

    // What follows belongs to the reader of the hub's output.
    private final TurnReader reader = new TurnReader();
    private boolean isStarted;
    private @Nullable Result previous;

    Turn(Session session, String promptId, boolean isSteering, Telemetry.TurnSpan span) {
        this.session = session;
        this.promptId = promptId;
        this.isSteering = isSteering;
        this.span = span;
        this.queue = new MessageQueue(session::setFull);
    }

    /**
     * Returns the id of the prompt, which every message of the turn has.
     *
     * @return the id
     */
    public String promptId() {
        return promptId;
    }

    /**
     * Returns the messages of the turn. The last one is the {@link Result}; after it comes {@link QwenException.WorkerExited} if
     * the turn's worker has died.
     *
     * @return an iterator for one thread
     * @throws IllegalStateException if the turn is read already
     */
    @Override
    public Iterator<Message> iterator() {
        use();
        return new Messages();
    }

    /**
     * Returns the messages as a publisher for one subscriber, which is served on a separate thread. Cancelling the
     * subscription interrupts the turn. Nothing is read ahead of what the subscriber requests.
     *
     * @return a publisher
     * @throws IllegalStateException if the turn is read already
     */
    public Flow.Publisher<Message> publisher() {
        use();
        return session.publish(onEnd -> new TurnPublisher(new Messages(), this::close, onEnd, "qwen-turn-" + promptId));
    }

    private void use() {
        if (isUsed.getAndSet(true)) {
            throw new IllegalStateException("A turn is read once. Call stream again for another turn.");
        }
    }

    /**
     * Reads the turn to its end.
     *
     * @return the result
     * @throws QwenException.TurnFailed if the turn did not complete
     * @throws IllegalStateException if the turn is read already
     */
    public Result result() {
        Result result = null;
        for (Message message : this) {
            if (message instanceof Result last) {
                result = last;
            }
        }
        if (result == null) {
            throw new QwenException.Closed();
        }
        if (!result.isDone()) {
            throw result.failure();
        }
        return result;
    }

    /** Asks for the end of the turn, which then ends with a result of {@link Status#CANCELLED}. It returns at once. */
    public void interrupt() {
        if (!isInterrupted.getAndSet(true)) {
            isCancelled = true;
            session.postCancel(this);
        }
    }

    /** Interrupts the turn if it has not ended. What still comes of it is dropped. */
    @Override
    public void close() {
        interrupt();
        queue.drop();
    }

    boolean isCancelled() {
        return isCancelled;
    }

    boolean hasJoined() {
        return hasJoined;
    }

    /** The iteration. It is used by one thread. */
    private final class Messages implements Iterator<Message> {
        private List<Message> batch = List.of();
        private int next;
        private boolean isAtEnd;
        private @Nullable Supplier<RuntimeException> failure;

        @Override
        public boolean hasNext() {
            if (failure != null) {
                Supplier<RuntimeException> cause = failure;
                failure = null;
                isAtEnd = true;
                throw cause.get();
            }
            if (Thread.currentThread().isInterrupted() && !isAtEnd) {
                throw abandon();
            }
            if (next < batch.size() || isAtEnd) {
                return !isAtEnd;
            }
            try {
                batch = queue.take();
                next = 0;
                isAtEnd = batch.isEmpty();
                return !isAtEnd;
            } catch (InterruptedException e) {
                throw abandon();
            } catch (QwenException e) {
                isAtEnd = true;
                throw e;
            }
        }

        private QwenException abandon() {
            isAtEnd = true;
            close();
            return Interruptions.restore("The turn was interrupted.");
        }

        @Override
        public Message next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            Message message = batch.get(next++);
            if (message instanceof Result result) {
                failure = session.afterResult(result, previous);
            }
            return message;
        }
    }

    /** Reads a piece of text. It is called by the reader of the hub's output, as all that follows. */
    void acceptText(Message.Meta meta, String text) {
        isStarted = true;
        queue.push(reader.piece(meta, text));
    }

    /** Reads a line of the turn. */
    void accept(Message.Meta meta, Envelope envelope) {
        for (Message message : reader.read(meta, envelope)) {
            if (message instanceof Result result) {
                finish(result);
                return;
            }
            if (message instanceof Message.Notice notice) {
                Result.Failure refusal = refusal(notice, envelope);
                if (refusal != null) {
                    session.remove(this);
                    settle(null, () -> Result.failure("The prompt was refused", refusal, null));
                    return;
                }
            } else if (message instanceof Message.SessionEvent event && hasSteered(event)) {
                hasJoined = true;
                session.remove(this);
                settle(null, null);
                return;
            } else {
                isStarted = true;
            }
            queue.push(message);
        }
    }

    private boolean hasSteered(Message.SessionEvent event) {
        isStarted = true;
        return isSteering && event.event().equals("Steered") && event.meta().promptId().equals(promptId);
    }

    /** Returns the error of a prompt that was refused before its turn began; null for any other notice. */
    private Result.@Nullable Failure refusal(Message.Notice notice, Envelope envelope) {
        Fields fields = envelope.fields();
        Fields metadata = fields == null ? null : fields.optional("metadata");
        Fields error = metadata == null ? null : metadata.optional("error");
        if (isStarted || error == null || MODEL_ERRORS.contains(notice.type())) {
            return null;
        }
        // The hub's refusal of a line may name only its session.
        boolean isOwn = envelope.promptId().equals(promptId) || error.text("param").equals("session_id");
        return isOwn ? Result.Failure.of(error) : null;
    }

    private void finish(Result result) {
        previous = session.finish(this, result);
        queue.push(result);
        settle(result, null);
    }

    /** Ends the queue of a turn that is no longer open, and its span. */
    void settle(@Nullable Result result, @Nullable Supplier<? extends RuntimeException> failure) {
        if (!isSettled.getAndSet(true)) {
            isCancelled = true;
            queue.end(failure);
            span.end(result, failure == null ? null : failure.get());
        }
    }
}
