package io.github.qwenagent;

import io.github.qwenagent.internal.hub.HubConnection;
import io.github.qwenagent.internal.json.Fields;
import io.github.qwenagent.internal.json.Schema;
import io.github.qwenagent.internal.threads.Interruptions;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A conversation with the agent. Its prompts are worked on one after the other. It is safe for concurrent use. Methods that
 * wait throw {@link QwenException.Interrupted} when the thread is interrupted.
 */
public final class Session implements AutoCloseable {
    private final AgentManager manager;
    private final HubConnection hub;
    private final Option.Values options;
    private final @Nullable Mirror mirror;
    private final ControlChannel control;
    private final AtomicReference<@Nullable CompletableFuture<Void>> closing = new AtomicReference<>();
    private final AtomicReference<@Nullable Path> folder = new AtomicReference<>();
    private final List<Attachment> attachments = new CopyOnWriteArrayList<>();
    /** The open prompts in the order in which they were sent. */
    private final List<Turn> turns = new CopyOnWriteArrayList<>();
    private final Set<TurnPublisher> publishers = ConcurrentHashMap.newKeySet();
    private volatile String id;
    private volatile @Nullable Result last;
    private volatile boolean isClosing;
    /** True once the lines of the id reach this session. Until then the id may belong to another one. */
    private volatile boolean isRegistered;
    /** Why the session accepts no more prompts; null while it does. */
    private final AtomicReference<@Nullable Supplier<QwenException>> failure = new AtomicReference<>();

    private final FlowControl flow = new FlowControl(this::postPaused);

    Session(AgentManager manager, HubConnection hub, Option.Values options) {
        this.manager = manager;
        this.hub = hub;
        this.options = options;
        this.id = options.get(Option.ID, "");
        this.mirror = Mirror.of(manager.options().store, id, options.get(Option.ENV, Map.of()));
        this.control = new ControlChannel(this, options);
    }

    /** Opens the session in the hub. */
    void open(@Nullable String forkFrom) {
        if (mirror != null) {
            mirror.restore();
        }
        Launch.OpenFields fields = Launch.openFields(options, forkFrom);
        folder.set(fields.folder());
        hub.register(id, new SessionReceiver(this, control, attachments));
        isRegistered = true;
        try {
            request("open", fields.fields(), timeouts().start());
        } catch (QwenException e) {
            // There is no session that `close` could end.
            isClosing = true;
            throw e;
        }
        logger().log(Level.DEBUG, "session opened: {0}", id);
        Map<String, Object> initialize = control.initializeFields();
        if (!initialize.isEmpty()) {
            request("initialize", initialize);
        }
    }

    /**
     * Returns the session's id, under which it can be resumed. It changes when the session continues in a fork
     * ({@link OnCrash#FORK}).
     *
     * @return the id
     */
    public String id() {
        return id;
    }

    /**
     * Returns the result of the last turn that ended. It survives the death of a worker.
     *
     * @return the result; null if no turn has ended
     */
    public @Nullable Result lastResult() {
        return last;
    }

    /**
     * Sends a prompt. Prompts that are sent while a turn runs are worked on after it.
     *
     * @param prompt the prompt
     * @return the turn, to be read and closed
     */
    public Turn stream(String prompt) {
        return stream(prompt, TurnOptions.defaults());
    }

    /**
     * Sends a prompt.
     *
     * @param prompt the prompt
     * @param options the options of the turn
     * @return the turn, to be read and closed
     */
    public Turn stream(String prompt, TurnOptions options) {
        return start(prompt, options, false);
    }

    /**
     * Runs a turn.
     *
     * @param prompt the prompt
     * @return the result
     * @throws QwenException.TurnFailed if the turn did not complete
     */
    public Result run(String prompt) {
        return run(prompt, TurnOptions.defaults());
    }

    /**
     * Runs a turn.
     *
     * @param prompt the prompt
     * @param options the options of the turn
     * @return the result
     * @throws QwenException.TurnFailed if the turn did not complete
     */
    public Result run(String prompt, TurnOptions options) {
        try (Turn turn = stream(prompt, options)) {
            return turn.result();
        }
    }

    /**
     * Runs a turn whose answer is a value. The schema that the model must keep to derives from its type, as for
     * {@link Tool#of}.
     *
     * @param <T> the type of the value
     * @param prompt the prompt
     * @param type the type, such as a record
     * @return the checked value and the result
     * @throws QwenException.StructuredOutput if there is no value, or one that does not fit
     */
    public <T> Typed<T> run(String prompt, Class<T> type) {
        return run(prompt, type, TurnOptions.defaults());
    }

    /**
     * Runs a turn whose answer is a value.
     *
     * @param <T> the type of the value
     * @param prompt the prompt
     * @param type the type, such as a record
     * @param options the options of the turn
     * @return the checked value and the result
     * @throws QwenException.StructuredOutput if there is no value, or one that does not fit
     */
    public <T> Typed<T> run(String prompt, Class<T> type, TurnOptions options) {
        Result result;
        try {
            result = run(prompt, options.withSchema(Schema.of(type).tree()));
        } catch (QwenException.TurnFailed e) {
            Result failed = e.result().orElse(null);
            if (failed != null && failed.status() == Status.ERROR) {
                throw new QwenException.StructuredOutput(String.valueOf(e.getMessage()), e, failed);
            }
            throw e;
        }
        return new Typed<>(result.outputAs(type), result);
    }

    /**
     * Runs a turn on a separate thread. Cancelling the future interrupts the turn.
     *
     * @param prompt the prompt
     * @return the result to come; it fails as {@link #run(String)} does
     */
    public CompletableFuture<Result> runAsync(String prompt) {
        return runAsync(prompt, TurnOptions.defaults());
    }

    /**
     * Runs a turn on a separate thread. Cancelling the future interrupts the turn.
     *
     * @param prompt the prompt
     * @param options the options of the turn
     * @return the result to come; it fails as {@link #run(String, TurnOptions)} does
     */
    public CompletableFuture<Result> runAsync(String prompt, TurnOptions options) {
        return new RunningTurn(() -> run(prompt, options));
    }

    /**
     * Adds a prompt to the running turn before its next model call and returns once it has joined. Without a running turn, or
     * if that ends before, the prompt is a separate turn, whose result is returned.
     *
     * @param prompt the prompt
     * @return what became of it
     */
    public SteerOutcome steer(String prompt) {
        try (Turn turn = start(prompt, TurnOptions.defaults(), true)) {
            flow.changeAsked(1);
            try {
                Result result = null;
                for (Message message : turn) {
                    result = message instanceof Result end ? end : result;
                }
                if (turn.hasJoined() || result == null) {
                    return new SteerOutcome(turn.hasJoined(), null);
                }
                if (!result.isDone()) {
                    throw result.failure();
                }
                return new SteerOutcome(false, result);
            } finally {
                flow.changeAsked(-1);
            }
        }
    }

    private Turn start(String prompt, TurnOptions turnOptions, boolean isSteering) {
        if (Thread.currentThread().isInterrupted()) {
            throw Interruptions.restore("The prompt was not sent.");
        }
        throwIfUnusable();
        String given = turnOptions.promptId;
        String promptId = given == null ? id + "########" + UUID.randomUUID() : given;
        Map<String, @Nullable Object> line = turnOptions.line(id, promptId, prompt);
        Telemetry.TurnSpan span = manager.options().telemetry.startTurn(id, promptId);
        if (!span.traceparent().isEmpty()) {
            line.put("traceparent", span.traceparent());
            line.put("tracestate", span.tracestate());
        }
        if (isSteering) {
            line.put("delivery", "steer");
        }
        Turn turn = new Turn(this, promptId, isSteering, span);
        turns.add(turn);
        try {
            throwIfUnusable();
            hub.send(line);
        } catch (InterruptedException e) {
            // The line is written all the same, so the turn stays open until its end.
            turn.close();
            throw Interruptions.restore("The prompt was interrupted.");
        } catch (QwenException e) {
            remove(turn);
            turn.settle(null, () -> e);
            throw e;
        }
        logger().log(Level.DEBUG, "prompt sent: {0} {1}", id, promptId);
        return turn;
    }

    /** Ends the running turn, which then ends with a result of {@link Status#CANCELLED}. The session continues. */
    public void interrupt() {
        List<Turn> running = List.copyOf(turns);
        if (!running.isEmpty()) {
            running.get(0).interrupt();
        }
    }

    /**
     * Changes the model.
     *
     * @param model its name; null for the one that the session started with
     */
    public void setModel(@Nullable String model) {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("model", model);
        request("set_model", fields);
    }

    /**
     * Changes what the agent may do without asking.
     *
     * @param mode the mode
     */
    public void setPermissionMode(PermissionMode mode) {
        request("set_permission_mode", Map.of("mode", mode.toString()));
    }

    /**
     * Puts files back to where they were before a prompt. It works between turns.
     *
     * @param promptId the id of the prompt
     * @return the paths that were put back
     */
    public List<String> rewind(String promptId) {
        return rewind(promptId, false);
    }

    /**
     * Tells which files {@link #rewind} would put back.
     *
     * @param promptId the id of the prompt
     * @return the paths
     */
    public List<String> previewRewind(String promptId) {
        return rewind(promptId, true);
    }

    private List<String> rewind(String promptId, boolean isDryRun) {
        Fields answer = Fields.of(request("rewind_files", Map.of("user_message_id", promptId, "dry_run", isDryRun)).value());
        Object files = answer == null ? null : answer.value("filesChanged");
        return files instanceof List<?> list ? list.stream().map(String::valueOf).toList() : List.of();
    }

    /**
     * Makes a session with the history of this one, which stays as it is.
     *
     * @return the fork
     */
    public Session fork() {
        return fork(SessionOptions.defaults());
    }

    /**
     * Makes a session with the history of this one, which stays as it is.
     *
     * @param forkOptions what differs from this session's options
     * @return the fork
     */
    public Session fork(SessionOptions forkOptions) {
        Option.Values own = options.copy();
        own.remove(Option.ID);
        own.remove(Option.AT);
        return manager.fork(id, forkOptions.values.over(own));
    }

    /**
     * Reads the numbered messages of the session after a number, those that were delivered before included, and then all that
     * follow. The session must be {@link OptionsBuilder#numbered}. A host that lost its connection resumes the session and
     * attaches after the last number that it has seen.
     *
     * @param after the number; 0 for all messages
     * @return the messages, to be read and closed
     */
    public Attachment attach(long after) {
        Attachment attachment = new Attachment(this, after);
        attachments.add(attachment);
        try {
            request("attach", Map.of("after", after));
        } catch (QwenException e) {
            attachment.close();
            throw e;
        }
        return attachment;
    }

    void detach(Attachment attachment) {
        attachments.remove(attachment);
    }

    /**
     * Sends any control request of the protocol, such as `get_context_usage`.
     *
     * @param subtype the request
     * @param fields its fields
     * @return its answer
     */
    public Json request(String subtype, Map<String, ?> fields) {
        return request(subtype, fields, timeouts().request());
    }

    private Json request(String subtype, Map<String, ?> fields, Duration limit) {
        throwIfUnusable();
        flow.changeAsked(1);
        try {
            return Json.of(hub.request(id, subtype, fields, limit));
        } finally {
            flow.changeAsked(-1);
        }
    }

    private void throwIfUnusable() {
        Supplier<QwenException> cause = failure.get();
        if (cause != null) {
            throw cause.get();
        }
        if (isClosing) {
            throw new QwenException.Closed();
        }
    }

    /**
     * Ends the session; its log stays, and it can be resumed. A running turn is cancelled, and its iteration ends. It returns
     * within {@link Timeouts#close} and may be called from any thread, several times.
     *
     * @throws QwenException.StoreFailed if the host's store failed
     */
    @Override
    public void close() {
        close(System.nanoTime() + timeouts().close().toNanos());
    }

    void close(long deadline) {
        CompletableFuture<Void> own = new CompletableFuture<>();
        CompletableFuture<Void> first = closing.compareAndExchange(null, own);
        if (first != null) {
            // Another thread is closing the session.
            first.join();
            return;
        }
        boolean wasInterrupted = Thread.interrupted();
        try {
            end(deadline);
        } finally {
            own.complete(null);
            if (wasInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private void end(long deadline) {
        boolean wasOpen = isRegistered && failure.get() == null && !isClosing;
        isClosing = true;
        if (wasOpen) {
            try {
                // The worker's last hooks are still served.
                hub.request(id, "close", Map.of(), Duration.ofNanos(Math.max(0, deadline - System.nanoTime())));
            } catch (QwenException e) {
                logger().log(Level.DEBUG, "close: " + id, e);
            }
        }
        if (isRegistered) {
            hub.unregister(id);
        }
        fail(QwenException.Closed::new);
        control.close(deadline);
        manager.forget(this);
        Launch.removeFolder(folder.getAndSet(null));
        logger().log(Level.DEBUG, "session closed: {0}", id);
        if (mirror != null) {
            mirror.flush();
        }
    }

    /** Ends all open turns with an exception. */
    void fail(Supplier<QwenException> cause) {
        failure.compareAndSet(null, cause);
        Result result = last;
        for (Turn turn : turns) {
            turn.settle(null, () -> withLastResult(cause.get(), result));
        }
        turns.clear();
        attachments.forEach(attachment -> attachment.end(cause));
        publishers.forEach(TurnPublisher::end);
    }

    private static QwenException withLastResult(QwenException cause, @Nullable Result result) {
        if (!(cause instanceof QwenException.WorkerExited lost) || result == null) {
            return cause;
        }
        return new QwenException.WorkerExited(String.valueOf(lost.getMessage()), lost.isHub(), lost.exitCode(), lost.signal(), lost.stderr(), result);
    }

    // What follows is for turns and the control channel.

    Timeouts timeouts() {
        return manager.options().timeouts;
    }

    Telemetry telemetry() {
        return manager.options().telemetry;
    }

    Logger logger() {
        return manager.options().logger;
    }

    Future<?> schedule(Runnable task, Duration delay) {
        return manager.scheduler().schedule(task, delay.toMillis(), TimeUnit.MILLISECONDS);
    }

    void post(Map<String, @Nullable Object> line) {
        hub.post(line);
    }

    /** Asks for the end of a turn if it is open. */
    void postCancel(Turn turn) {
        if (turns.contains(turn) && failure.get() == null) {
            Map<String, @Nullable Object> line = new LinkedHashMap<>();
            line.put("type", "control/cancel");
            line.put("session_id", id);
            line.put("prompt_id", turn.promptId());
            line.put("reason", "escape");
            hub.post(line);
        }
        control.cancel(turn);
    }

    /** Makes a publisher that ends with the session. */
    TurnPublisher publish(Function<Consumer<TurnPublisher>, TurnPublisher> make) {
        TurnPublisher publisher = make.apply(publishers::remove);
        publishers.add(publisher);
        return publisher;
    }

    /** Takes a turn out of the open ones. */
    void remove(Turn turn) {
        turns.remove(turn);
        control.cancel(turn);
    }

    /** Notes the result of a turn and returns the one before it. */
    @Nullable Result finish(Turn turn, Result result) {
        remove(turn);
        Result before = last;
        last = result;
        logger().log(Level.DEBUG, "turn ended: {0} {1} {2}, {3} tokens", id, turn.promptId(), result.status(), result.usage().totalTokens());
        return before;
    }

    /** Stores what a turn added. Returns the failure of that, or the end of the turn's worker; null if all is well. */
    @Nullable Supplier<RuntimeException> afterResult(Result result, @Nullable Result previous) {
        if (mirror != null) {
            try {
                mirror.flush();
            } catch (QwenException e) {
                return () -> e;
            }
        }
        Result.Failure error = result.error();
        if (error == null || !error.code().equals("worker_lost")) {
            return null;
        }
        return () -> Launch.workerExited(result, error, previous);
    }

    /** Continues under the id of a fork, which further lines carry. */
    void continueAs(String forkId) {
        hub.rename(id, forkId);
        if (mirror != null) {
            mirror.follow(forkId);
        }
        id = forkId;
    }

    /** Returns the turn of a prompt, or the running one for an empty id; null if there is none. */
    @Nullable Turn askingTurn(String promptId) {
        for (Turn turn : turns) {
            if (promptId.isEmpty() || turn.promptId().equals(promptId)) {
                return turn;
            }
        }
        return null;
    }

    /** Notes that a queue of the session holds too much, or no longer does. */
    void setFull(boolean isFull) {
        flow.changeFull(isFull ? 1 : -1);
    }

    /** Asks the hub to pause or resume the session's worker. */
    private void postPaused(boolean isPaused) {
        if (failure.get() != null) {
            return;
        }
        Map<String, @Nullable Object> line = new LinkedHashMap<>();
        line.put("type", Wire.CONTROL_REQUEST);
        line.put("request_id", hub.nextRequestId());
        line.put("subtype", "flow");
        line.put("session_id", id);
        line.put("paused", isPaused);
        hub.post(line);
    }
}
