package io.github.qwenagent;

import io.github.qwenagent.internal.hub.HubConfig;
import io.github.qwenagent.internal.hub.HubConnection;
import io.github.qwenagent.internal.threads.Interruptions;
import io.github.qwenagent.internal.threads.Threads;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Makes sessions that share one `qwen hub`, which starts, watches and restarts their workers. It is safe for concurrent use.
 * Close it when it is no longer needed.
 */
public final class AgentManager implements AutoCloseable {
    private final AgentOptions options;
    private final HubConnection hub;
    private final Set<Session> sessions = ConcurrentHashMap.newKeySet();
    private final AtomicReference<@Nullable CompletableFuture<Void>> closing = new AtomicReference<>();
    private final ScheduledThreadPoolExecutor scheduler;

    private AgentManager(AgentOptions options, HubConnection hub) {
        this.options = options;
        this.hub = hub;
        // Its thread starts with the first callback.
        scheduler = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(task, "qwen-deadlines-" + hub.pid());
            thread.setDaemon(true);
            return thread;
        });
        scheduler.setRemoveOnCancelPolicy(true);
    }

    /**
     * Starts a hub with the default options.
     *
     * @return the manager
     * @throws QwenException.BinaryNotFound if there is no qwen program
     * @throws QwenException.Protocol if the program is not a hub of this protocol
     */
    public static AgentManager open() {
        return open(AgentOptions.defaults());
    }

    /**
     * Starts a hub.
     *
     * @param options the options of the manager and the defaults of its sessions
     * @return the manager
     * @throws QwenException.BinaryNotFound if there is no qwen program
     * @throws QwenException.Protocol if the program is not a hub of this protocol
     */
    public static AgentManager open(AgentOptions options) {
        if (Thread.currentThread().isInterrupted()) {
            throw Interruptions.restore("The hub was not started.");
        }
        Path program = Binary.find(options.binaryPath);
        Launch.HubArguments arguments = Launch.hubArguments(options.pool);
        try {
            HubConnection hub = HubConnection.start(new HubConfig(program, arguments.arguments(),
                    options.session.get(Option.ENV, Map.of()), options.session.get(Option.CWD), options.timeouts.start(), options.logger));
            options.logger.log(Level.DEBUG, "hub started: {0} {1}", hub.pid(), hub.handshake().program());
            return new AgentManager(options, hub);
        } finally {
            // The hub has read it by its handshake.
            Launch.removeFolder(arguments.folder());
        }
    }

    AgentOptions options() {
        return options;
    }

    ScheduledThreadPoolExecutor scheduler() {
        return scheduler;
    }

    void forget(Session session) {
        sessions.remove(session);
    }

    /**
     * Returns the process id of the hub.
     *
     * @return the id
     */
    public long pid() {
        return hub.pid();
    }

    /**
     * Returns the name and version of the qwen program.
     *
     * @return such as `qwen-0.1.0`
     */
    public String program() {
        return hub.handshake().program();
    }

    /**
     * Opens a new session with the options of the manager.
     *
     * @return the session
     */
    public Session createSession() {
        return createSession(SessionOptions.defaults());
    }

    /**
     * Opens a new session. Its worker starts with the first prompt, or at once if the session brings hooks, tools, agents or
     * instructions.
     *
     * @param sessionOptions what differs from the options of the manager
     * @return the session
     */
    public Session createSession(SessionOptions sessionOptions) {
        return start(sessionOptions.values.over(options.session), null);
    }

    /**
     * Continues a session with its history.
     *
     * @param id the session
     * @return the session
     * @throws QwenException.SessionNotFound if there is no such session
     */
    public Session resumeSession(String id) {
        return resumeSession(id, SessionOptions.defaults());
    }

    /**
     * Continues a session with its history.
     *
     * @param id the session
     * @param sessionOptions what differs from the options of the manager
     * @return the session
     * @throws QwenException.SessionNotFound if there is no such session
     */
    public Session resumeSession(String id, SessionOptions sessionOptions) {
        if (sessionOptions.values.get(Option.AT) != null) {
            throw new IllegalArgumentException("A session is resumed at its end. Fork it at the point instead.");
        }
        Option.Values merged = sessionOptions.values.over(options.session);
        require(id, merged);
        merged.put(Option.ID, id);
        return start(merged, null);
    }

    /**
     * Makes a session with the history of another, which stays as it is and may be running.
     *
     * @param id the other session
     * @return the fork
     * @throws QwenException.SessionNotFound if there is no such session
     */
    public Session forkSession(String id) {
        return forkSession(id, SessionOptions.defaults());
    }

    /**
     * Makes a session with the history of another, which stays as it is and may be running.
     *
     * @param id the other session
     * @param sessionOptions what differs from the options of the manager, such as {@link SessionOptions.Builder#at}
     * @return the fork
     * @throws QwenException.SessionNotFound if there is no such session
     */
    public Session forkSession(String id, SessionOptions sessionOptions) {
        return fork(id, sessionOptions.values.over(options.session));
    }

    Session fork(String id, Option.Values merged) {
        require(id, merged);
        String point = merged.get(Option.AT);
        if (point == null) {
            return start(merged, id);
        }
        if (merged.get(Option.ID) == null) {
            merged.put(Option.ID, UUID.randomUUID().toString());
        }
        Launch.forkAt(Binary.find(options.binaryPath), id, point, merged.get(Option.ID, ""), merged);
        return start(merged, null);
    }

    /** Checks that a session exists, in the host's store or on disk. */
    private void require(String id, Option.Values merged) {
        if (!SessionOptions.ID.matcher(id).matches()) {
            throw new QwenException.SessionNotFound("\"" + id + "\" is not a session id.");
        }
        if (merged.get(Option.TENANT) != null) {
            // A tenant's sessions are in a place that only the hub knows.
            return;
        }
        Map<String, String> env = merged.get(Option.ENV, Map.of());
        Mirror mirror = Mirror.of(options.store, id, env);
        if (mirror != null) {
            mirror.restore();
        }
        if (!Files.exists(Mirror.sessionFile(env, id))) {
            throw new QwenException.SessionNotFound("There is no session \"" + id + "\".");
        }
    }

    private Session start(Option.Values merged, @Nullable String forkFrom) {
        if (merged.get(Option.ID) == null) {
            merged.put(Option.ID, UUID.randomUUID().toString());
        }
        Session session = new Session(this, hub, merged);
        sessions.add(session);
        boolean isOpen = false;
        try {
            if (closing.get() != null) {
                throw new QwenException.Closed();
            }
            session.open(forkFrom);
            isOpen = true;
            return session;
        } finally {
            if (!isOpen) {
                session.close();
            }
        }
    }

    /**
     * Runs one prompt in a new session.
     *
     * @param prompt the prompt
     * @return the result
     * @throws QwenException.TurnFailed if the turn did not complete
     */
    public Result run(String prompt) {
        return run(prompt, TurnOptions.defaults());
    }

    /**
     * Runs one prompt in a new session.
     *
     * @param prompt the prompt
     * @param turnOptions the options of the turn
     * @return the result
     * @throws QwenException.TurnFailed if the turn did not complete
     */
    public Result run(String prompt, TurnOptions turnOptions) {
        try (Session session = createSession()) {
            return session.run(prompt, turnOptions);
        }
    }

    /**
     * Runs one prompt in a new session, whose answer is a value.
     *
     * @param <T> the type of the value
     * @param prompt the prompt
     * @param type the type, such as a record
     * @return the checked value and the result
     * @throws QwenException.StructuredOutput if there is no value, or one that does not fit
     */
    public <T> Typed<T> run(String prompt, Class<T> type) {
        try (Session session = createSession()) {
            return session.run(prompt, type);
        }
    }

    /**
     * Runs one prompt in a new session, on a separate thread. Cancelling the future interrupts the turn.
     *
     * @param prompt the prompt
     * @return the result to come
     */
    public CompletableFuture<Result> runAsync(String prompt) {
        return new RunningTurn(() -> run(prompt));
    }

    /**
     * Returns the state of the hub: workers, queue and sessions.
     *
     * @return the state, which docs/hub.md describes
     */
    public Json status() {
        return Json.of(hub.request("", "hub/status", Map.of(), options.timeouts.request()));
    }

    /**
     * Closes every session and ends the hub. Running turns are cancelled. It returns within {@link Timeouts#close} and may be
     * called from any thread, several times.
     */
    @Override
    public void close() {
        CompletableFuture<Void> own = new CompletableFuture<>();
        CompletableFuture<Void> first = closing.compareAndExchange(null, own);
        if (first != null) {
            first.join();
            return;
        }
        long deadline = System.nanoTime() + options.timeouts.close().toNanos();
        try {
            closeSessions(deadline);
        } finally {
            hub.close(Duration.ofNanos(Math.max(0, deadline - System.nanoTime())));
            scheduler.shutdownNow();
            options.logger.log(Level.DEBUG, "hub ended: {0}", hub.pid());
            own.complete(null);
        }
    }

    /** Closes all sessions at once and throws the first failure of a store. */
    private void closeSessions(long deadline) {
        List<CompletableFuture<Void>> all = sessions.stream().map(session -> {
            CompletableFuture<Void> done = new CompletableFuture<>();
            Threads.create("qwen-close", () -> {
                try {
                    session.close(deadline);
                    done.complete(null);
                } catch (RuntimeException e) {
                    done.completeExceptionally(e);
                }
            }).start();
            return done;
        }).toList();
        QwenException failure = null;
        for (CompletableFuture<Void> each : all) {
            Throwable cause = each.handle((nothing, thrown) -> thrown).join();
            failure = failure == null && cause instanceof QwenException thrown ? thrown : failure;
        }
        if (failure != null) {
            throw failure;
        }
    }
}
