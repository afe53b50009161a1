package io.github.qwenagent.internal.hub;

import io.github.qwenagent.QwenException;
import io.github.qwenagent.internal.json.Fields;
import io.github.qwenagent.internal.json.JsonWriter;
import io.github.qwenagent.internal.threads.Interruptions;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A connection to one `qwen hub` process: it starts it, splits its output into lines, passes each line to the session that it
 * belongs to, and pairs requests with their answers. It contains no supervision: restarts, heartbeats and crash policies are
 * the hub's work. It is safe for concurrent use.
 */
public final class HubConnection {
    /** The version of the protocol that this SDK implements. */
    public static final String PROTOCOL_VERSION = "1.0";
    /** Bounds how long the pipes of a process that has ended are read: another process may hold them. */
    private static final long DRAIN_MILLISECONDS = 2_000;
    private static final int SHOWN = 200;

    /** The hub's first line. */
    public record Handshake(String protocolVersion, String program) {}

    private final HubConfig config;
    private final HubProcess process;
    private final LineWriter writer = new LineWriter();
    private final StderrReader errors;
    private final TextLines texts = new TextLines();
    private final CompletableFuture<Handshake> handshake = new CompletableFuture<>();
    private final CompletableFuture<Supplier<QwenException>> ended = new CompletableFuture<>();
    private final Map<String, CompletableFuture<@Nullable Object>> pending = new ConcurrentHashMap<>();
    private final AtomicLong requests = new AtomicLong();
    private final String requestPrefix = "java-" + UUID.randomUUID() + "-";

    private final Object lock = new Object();
    private final Map<String, HubReceiver> receivers = new HashMap<>();
    private volatile boolean haveReceiversChanged;
    private volatile boolean isClosing;
    private volatile String fatal = "";

    private HubConnection(HubConfig config, HubProcess process) {
        this.config = config;
        this.process = process;
        this.errors = new StderrReader(config.logger());
    }

    /**
     * Starts the program and waits for its handshake.
     *
     * @throws QwenException.Protocol if the program is not a hub of this protocol
     */
    public static HubConnection start(HubConfig config) {
        List<String> command = new ArrayList<>();
        command.add(config.program().toString());
        command.addAll(config.arguments());
        HubProcess process;
        try {
            process = HubProcess.start(command, config.environment(), config.directory());
        } catch (IOException e) {
            throw new QwenException.Protocol("Cannot start " + config.program() + ": " + e.getMessage(), e);
        }
        HubConnection connection = new HubConnection(config, process);
        connection.startThread("writer", () -> connection.writer.run(process.input()));
        Thread errorThread = connection.startThread("stderr", () -> connection.errors.run(process.errors()));
        connection.startThread("reader", () -> connection.run(errorThread));
        connection.awaitHandshake();
        return connection;
    }

    private Thread startThread(String role, Runnable task) {
        Thread thread = new Thread(null, task, "qwen-hub-" + role + "-" + process.pid(), 0, false);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private void awaitHandshake() {
        try {
            handshake.get(config.startTimeout().toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            kill();
            throw Interruptions.restore("The start of the hub was interrupted.");
        } catch (ExecutionException e) {
            killAndWait();
            throw (QwenException) e.getCause();
        } catch (TimeoutException e) {
            killAndWait();
            String tail = errors.tail();
            throw new QwenException.Protocol(config.program() + " wrote no handshake within " + describe(config.startTimeout())
                    + " (start time-out). It may not be a qwen program"
                    + (tail.isBlank() ? "." : "; the end of its standard error: " + tail.strip()), e);
        }
    }

    private void killAndWait() {
        kill();
        try {
            ended.get(2 * DRAIN_MILLISECONDS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException | TimeoutException e) {
            config.logger().log(Level.DEBUG, "hub output is still open", e);
        }
    }

    private static String describe(Duration time) {
        return time.toMillis() % 1000 == 0 ? time.toSeconds() + " s" : time.toMillis() + " ms";
    }

    /** Returns what the hub announced. */
    public Handshake handshake() {
        return handshake.join();
    }

    /** Returns the process id of the hub. */
    public long pid() {
        return process.pid();
    }

    /** Passes the lines of a session to its receiver from now on. */
    public void register(String sessionId, HubReceiver receiver) {
        synchronized (lock) {
            throwIfEnded();
            if (receivers.putIfAbsent(sessionId, receiver) != null) {
                throw new IllegalStateException("The session " + sessionId + " is open already.");
            }
            haveReceiversChanged = true;
        }
    }

    /** Passes no more lines to the session's receiver. */
    public void unregister(String sessionId) {
        synchronized (lock) {
            receivers.remove(sessionId);
            haveReceiversChanged = true;
        }
    }

    /** Passes the lines of another session to the receiver: a fork in which the session continues. */
    public void rename(String from, String to) {
        synchronized (lock) {
            HubReceiver receiver = receivers.remove(from);
            if (receiver != null) {
                receivers.put(to, receiver);
                haveReceiversChanged = true;
            }
        }
    }

    private void throwIfEnded() {
        Supplier<QwenException> cause = ended.getNow(null);
        if (cause != null) {
            throw cause.get();
        }
    }

    /** Queues a line and returns at once. A line for a hub that is gone is dropped. */
    public void post(Map<String, @Nullable Object> line) {
        writer.post(JsonWriter.line(line));
    }

    /** Writes a line, waiting for the pipe. Interruption leaves the line queued. */
    public void send(Map<String, @Nullable Object> line) throws InterruptedException {
        CompletableFuture<Void> written = writer.send(JsonWriter.line(line));
        try {
            written.get();
        } catch (ExecutionException e) {
            throw explain((IOException) e.getCause());
        }
    }

    /** Prefers the end of the hub to the failed write that it caused. */
    private QwenException explain(IOException failure) throws InterruptedException {
        try {
            return ended.get(DRAIN_MILLISECONDS, TimeUnit.MILLISECONDS).get();
        } catch (ExecutionException | TimeoutException e) {
            return isClosing ? new QwenException.Closed() : new QwenException.Protocol("Cannot write to the hub: " + failure.getMessage(), failure);
        }
    }

    /** Returns an id that no other request has, of an earlier connection either: `attach` delivers its answers again. */
    public String nextRequestId() {
        return requestPrefix + requests.incrementAndGet();
    }

    /** Sends a control request and waits for its answer. */
    public @Nullable Object request(String sessionId, String subtype, Map<String, ?> fields, Duration limit) {
        Map<String, @Nullable Object> line = new LinkedHashMap<>();
        line.put("type", "control_request");
        line.put("subtype", subtype);
        if (!sessionId.isEmpty()) {
            line.put("session_id", sessionId);
        }
        line.putAll(fields);
        return exchange(subtype, line, limit);
    }

    /** Sends a line under a new request id and waits for the answer to it. */
    public @Nullable Object exchange(String subtype, Map<String, @Nullable Object> line, Duration limit) {
        if (Thread.currentThread().isInterrupted()) {
            throw Interruptions.restore("The request " + subtype + " was not sent.");
        }
        String id = nextRequestId();
        line.put("request_id", id);
        CompletableFuture<@Nullable Object> answer = new CompletableFuture<>();
        pending.put(id, answer);
        try {
            throwIfEnded();
            send(line);
            return answer.get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            throw Interruptions.restore("The request " + subtype + " was interrupted.");
        } catch (TimeoutException e) {
            throw new QwenException.Timeout("request", limit);
        } catch (ExecutionException e) {
            throw ((Failure) e.getCause()).describe(subtype);
        } finally {
            pending.remove(id);
        }
    }

    /** The failure of a request. The exception is made where the caller waits. */
    private static final class Failure extends Exception {
        private static final long serialVersionUID = 1;
        private final transient Function<String, QwenException> describe;

        Failure(Function<String, QwenException> describe) {
            super(null, null, false, false);
            this.describe = describe;
        }

        QwenException describe(String subtype) {
            return describe.apply(subtype);
        }

        static Failure refusal(String code, String message, boolean isRetryable) {
            return new Failure(subtype -> code.equals("unknown_session")
                    ? new QwenException.SessionNotFound(message)
                    : new QwenException.RequestRefused(subtype, code, message, isRetryable));
        }
    }

    /** Ends the hub's input and waits for its end. At the limit the hub is killed. */
    public void close(Duration limit) {
        isClosing = true;
        writer.close();
        boolean wasInterrupted = Thread.interrupted();
        try {
            ended.get(Math.max(0, limit.toMillis()), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            wasInterrupted = true;
            kill();
        } catch (TimeoutException e) {
            killAndWait();
        } catch (ExecutionException e) {
            throw new IllegalStateException(e);
        }
        if (wasInterrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Ends the hub at once. */
    public void kill() {
        isClosing = true;
        process.kill();
    }

    /** Reads the hub's output to its end. */
    private void run(Thread errorThread) {
        boolean isGreeted = false;
        try {
            LineReader lines = new LineReader(process.output());
            for (byte[] line = lines.next(); line != null; line = lines.next()) {
                if (line.length == 0) {
                    continue;
                }
                if (haveReceiversChanged) {
                    haveReceiversChanged = false;
                    texts.forget();
                }
                if (!isGreeted) {
                    isGreeted = greet(line);
                } else if (!texts.deliver(line)) {
                    dispatch(line);
                }
            }
        } catch (IOException e) {
            config.logger().log(Level.DEBUG, "hub output ended", e);
        } finally {
            finish(isGreeted, errorThread);
        }
    }

    private void finish(boolean isGreeted, Thread errorThread) {
        HubProcess.Exit exit = new HubProcess.Exit(-1, 0);
        try {
            if (!process.waitFor(DRAIN_MILLISECONDS)) {
                // A hub without output is of no use.
                process.kill();
                process.waitFor(DRAIN_MILLISECONDS);
            }
            exit = process.exit();
            errorThread.join(DRAIN_MILLISECONDS);
        } catch (InterruptedException | IllegalThreadStateException e) {
            config.logger().log(Level.WARNING, "the end of the hub is unknown", e);
        }
        end(isGreeted, exit);
    }

    /** Reads the first line. It is true once the hub has announced itself. */
    private boolean greet(byte[] line) {
        Fields hello = Fields.parse(line);
        Fields metadata = hello == null ? null : hello.optional("metadata");
        Fields error = hello == null ? null : hello.optional("error");
        String version = metadata == null ? "" : metadata.text("protocol_version");
        if (error != null && !error.text("message").isEmpty()) {
            refuse(config.program() + " cannot serve sessions: " + error.text("message"));
        } else if (hello == null || version.isEmpty()) {
            String shown = new String(line, 0, Math.min(line.length, SHOWN), StandardCharsets.UTF_8);
            refuse(config.program() + " is not a qwen program: its first line was \"" + shown + "\".");
        } else if (!major(version).equals(major(PROTOCOL_VERSION))) {
            refuse(config.program() + " uses protocol version " + version + ", and this SDK uses " + PROTOCOL_VERSION
                    + ". Install matching versions of both.");
        } else {
            return handshake.complete(new Handshake(version, hello.text("system_fingerprint")));
        }
        return false;
    }

    private static String major(String version) {
        int dot = version.indexOf('.');
        return dot < 0 ? version : version.substring(0, dot);
    }

    private void refuse(String message) {
        handshake.completeExceptionally(new QwenException.Protocol(message, null));
    }

    /** Passes a line to its session, or an answer to the caller of its request. */
    private void dispatch(byte[] line) {
        Envelope envelope = Envelope.read(line);
        Fields fields = envelope.fields();
        if (fields != null) {
            if (envelope.kind().equals("control_response") && answer(envelope.requestId(), fields)) {
                return;
            }
            Fields error = envelope.kind().isEmpty() ? fields.optional("error") : null;
            if (error != null && !error.text("message").isEmpty()) {
                // The exit that follows is explained by it.
                fatal = error.text("message");
                return;
            }
        }
        if (envelope.sessionId().isEmpty()) {
            // A line without a session concerns every session.
            all().forEach(receiver -> receiver.line(envelope, line));
            return;
        }
        HubReceiver receiver;
        synchronized (lock) {
            receiver = receivers.get(envelope.sessionId());
        }
        if (receiver != null) {
            texts.learn(line, envelope.promptId(), receiver);
            receiver.line(envelope, line);
        }
    }

    private List<HubReceiver> all() {
        synchronized (lock) {
            return List.copyOf(receivers.values());
        }
    }

    /** Passes an answer to the request that it belongs to; false if no one waits for it. */
    private boolean answer(String requestId, Fields line) {
        Fields body = line.optional("response");
        if (body == null) {
            return false;
        }
        String id = requestId.isEmpty() ? body.text("request_id") : requestId;
        CompletableFuture<@Nullable Object> answer = pending.remove(id);
        if (answer == null) {
            return false;
        }
        if (body.text("subtype").equals("success")) {
            Object result = body.value("result");
            answer.complete(result == null ? body.value("response") : result);
            return true;
        }
        Fields error = body.optional("error");
        answer.completeExceptionally(error == null
                ? Failure.refusal("", body.text("error"), false)
                : Failure.refusal(error.text("code"), error.text("message"), Boolean.TRUE.equals(error.value("retryable"))));
        return true;
    }

    /** Reports the end to everyone who waits. */
    private void end(boolean wasGreeted, HubProcess.Exit exit) {
        String tail = errors.tail();
        if (!wasGreeted) {
            String said = tail.isBlank() ? "" : ": " + tail.strip();
            refuse(config.program() + " ended before it announced itself (" + exit + "). It may not be a qwen program" + said);
        }
        String message = "The hub has ended unexpectedly (" + exit + ")" + (fatal.isEmpty() ? "" : ": " + fatal);
        Supplier<QwenException> cause = isClosing
                ? QwenException.Closed::new
                : () -> new QwenException.WorkerExited(message, true, exit.code(), exit.signal(), tail, null);
        writer.fail(new IOException("The hub has ended."));
        List<HubReceiver> all;
        synchronized (lock) {
            ended.complete(cause);
            all = List.copyOf(receivers.values());
        }
        for (String id : List.copyOf(pending.keySet())) {
            CompletableFuture<@Nullable Object> answer = pending.remove(id);
            if (answer != null) {
                answer.completeExceptionally(new Failure(subtype -> cause.get()));
            }
        }
        all.forEach(receiver -> receiver.lost(cause));
    }
}
