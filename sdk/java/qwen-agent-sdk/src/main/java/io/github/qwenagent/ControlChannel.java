package io.github.qwenagent;

import io.github.qwenagent.internal.hub.HubConnection;
import io.github.qwenagent.internal.json.Fields;
import io.github.qwenagent.internal.threads.Threads;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Answers the worker's questions: permissions, hooks, and messages to tool servers of this process. Each question has a thread
 * and exactly one answer. A callback that fails or is late is an error answer, which the worker takes as no. A question that
 * was withdrawn gets no answer.
 */
final class ControlChannel {
    private static final Duration WORKER_TIMEOUT = Duration.ofMinutes(1);

    /** A control request of the worker. The turn is null for a question of the session. */
    private final class Question implements Runnable {
        private final Fields request;
        private final @Nullable Turn turn;
        private final AtomicReference<@Nullable Future<?>> timer = new AtomicReference<>();
        private final Thread thread;

        Question(Fields request, @Nullable Turn turn) {
            this.request = request;
            this.turn = turn;
            this.thread = Threads.create("qwen-callback-" + id(), this);
        }

        String id() {
            return request.text("request_id");
        }

        void start() {
            Duration limit = request.text("subtype").equals("mcp_message") ? session.timeouts().tool() : session.timeouts().callback();
            timer.set(session.schedule(() -> expire(limit), limit));
            thread.start();
        }

        /** A callback that ignores its interruption must not keep the worker waiting. */
        private void expire(Duration limit) {
            respond(this, null, new QwenException.Timeout("callback", limit));
            thread.interrupt();
        }

        @Override
        public void run() {
            try {
                respond(this, answer(request), null);
            } catch (Throwable failure) {
                // A callback may throw anything; none of it may cost the session.
                respond(this, null, failure);
            } finally {
                stopTimer();
                leave();
            }
        }

        void stopTimer() {
            Future<?> started = timer.get();
            if (started != null) {
                started.cancel(false);
            }
        }

        void cancel() {
            stopTimer();
            thread.interrupt();
        }
    }

    private final Session session;
    private final Option.Values options;
    private final Map<String, RegisteredHook> hooks = new LinkedHashMap<>();
    private final Map<String, Function<Telemetry, McpConnection>> connectors = new HashMap<>();
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition isIdle = lock.newCondition();
    private final Map<String, Question> open = new HashMap<>();
    /** Held while the host makes a connection, which may take its time. */
    private final ReentrantLock connecting = new ReentrantLock();
    private final Map<String, McpConnection> connections = new ConcurrentHashMap<>();
    /** Counts callbacks that have not returned. */
    private int running;

    ControlChannel(Session session, Option.Values options) {
        this.session = session;
        this.options = options;
        for (RegisteredHook hook : options.get(Option.HOOKS, List.of())) {
            hooks.put("hook_" + hooks.size(), hook);
        }
        for (ToolServer server : options.get(Option.TOOLS, List.of())) {
            Function<Telemetry, McpConnection> connector = server.connector();
            if (connector != null) {
                connectors.put(server.name(), connector);
            }
        }
    }

    /** Returns what the session announces to its workers; empty if no worker is needed before the first prompt. */
    Map<String, Object> initializeFields() {
        Map<String, Object> fields = new LinkedHashMap<>();
        if (!hooks.isEmpty()) {
            fields.put("hooks", declareHooks());
        }
        Map<String, Object> external = new LinkedHashMap<>();
        for (ToolServer server : options.get(Option.TOOLS, List.of())) {
            Map<String, Object> config = server.external();
            if (config != null) {
                external.put(server.name(), config);
            }
        }
        if (!connectors.isEmpty()) {
            fields.put("sdkMcpServers", List.copyOf(connectors.keySet()));
        }
        if (!external.isEmpty()) {
            fields.put("mcpServers", external);
        }
        Map<String, Object> agents = new LinkedHashMap<>();
        options.get(Option.AGENTS, Map.of()).forEach((name, agent) -> agents.put(name, agent.wire()));
        if (!agents.isEmpty()) {
            fields.put("agents", agents);
        }
        putText(fields, "systemPrompt", options.get(Option.SYSTEM_PROMPT));
        putText(fields, "appendSystemPrompt", options.get(Option.APPEND_SYSTEM_PROMPT));
        putText(fields, "policyDescription", options.get(Option.POLICY_DESCRIPTION));
        Duration limit = session.timeouts().callback();
        if (options.get(Option.CAN_USE_TOOL) != null && !limit.equals(WORKER_TIMEOUT)) {
            fields.put("timeout", Map.of("canUseTool", limit.toMillis()));
        }
        if (!fields.isEmpty()) {
            fields.put("protocol_version", HubConnection.PROTOCOL_VERSION);
        }
        return fields;
    }

    private static void putText(Map<String, Object> fields, String name, @Nullable String text) {
        if (text != null && !text.isEmpty()) {
            fields.put(name, text);
        }
    }

    private Map<String, Object> declareHooks() {
        Map<HookEvent, List<Object>> matchers = new EnumMap<>(HookEvent.class);
        hooks.forEach((id, hook) -> {
            Map<String, Object> matcher = new LinkedHashMap<>();
            matcher.put("hookCallbackIds", List.of(id));
            matcher.put("timeout_ms", session.timeouts().callback().toMillis());
            putText(matcher, "matcher", hook.matcher());
            if (hook.isStrict()) {
                matcher.put("onFailure", "block");
            }
            matchers.computeIfAbsent(hook.event(), event -> new ArrayList<>()).add(matcher);
        });
        Map<String, Object> declared = new LinkedHashMap<>();
        matchers.forEach((event, list) -> declared.put(event.toString(), list));
        return declared;
    }

    /** Starts the callback of a question. */
    void handle(Fields request) {
        String id = request.text("request_id");
        if (id.isEmpty()) {
            session.logger().log(Level.WARNING, "unreadable control request {0}", request.map());
            return;
        }
        Question question = new Question(request, session.askingTurn(request.text("prompt_id")));
        lock.lock();
        try {
            if (open.putIfAbsent(id, question) != null) {
                // A client that attached gets open questions again.
                return;
            }
            running++;
        } finally {
            lock.unlock();
        }
        question.start();
    }

    /** Sends the answer to a question that is still open. */
    private void respond(Question question, @Nullable Object result, @Nullable Throwable failure) {
        lock.lock();
        try {
            if (!open.remove(question.id(), question)) {
                return;
            }
        } finally {
            lock.unlock();
        }
        if (question.turn != null && question.turn.isCancelled()) {
            // The turn is being cancelled, which withdraws the question. An answer would let the turn run on.
            return;
        }
        Map<String, @Nullable Object> response = new LinkedHashMap<>();
        response.put("subtype", failure == null ? "success" : "error");
        if (failure == null) {
            response.put("result", result);
        } else {
            session.logger().log(Level.WARNING, "callback failed: " + question.request.text("subtype") + " " + question.id(), failure);
            // The text of the host's exception is for the host only.
            response.put("error", Map.of("message", describe(failure), "retryable", false));
        }
        Map<String, @Nullable Object> line = new LinkedHashMap<>();
        line.put("type", Wire.CONTROL_RESPONSE);
        line.put("request_id", question.id());
        line.put("session_id", question.request.text("session_id"));
        line.put("response", response);
        session.post(line);
    }

    private static String describe(Throwable failure) {
        if (failure instanceof QwenException.Timeout late) {
            return "the host did not answer within " + late.limit().toMillis() + " ms";
        }
        return failure instanceof NoCallbackException ? "there is no callback for this question" : "the callback of the host failed";
    }

    /** A question for which the host has no callback. */
    private static final class NoCallbackException extends Exception {
        private static final long serialVersionUID = 1;
    }

    /** Runs the callback that a question is for. */
    private Object answer(Fields request) throws Exception {
        switch (request.text("subtype")) {
            case "can_use_tool":
                return permit(request);
            case "hook_callback":
                RegisteredHook hook = hooks.get(request.text("callback_id"));
                if (hook == null) {
                    throw new NoCallbackException();
                }
                return hook.hook().run(HookInput.read(hook.event(), request)).wire(hook.event());
            case "mcp_message":
                Map<String, @Nullable Object> answer = new LinkedHashMap<>();
                answer.put("mcp_response", connection(request.text("server_name")).handle(Json.of(request.value("message"))));
                return answer;
            default:
                throw new NoCallbackException();
        }
    }

    private McpConnection connection(String server) throws NoCallbackException {
        Function<Telemetry, McpConnection> connector = connectors.get(server);
        if (connector == null) {
            throw new NoCallbackException();
        }
        connecting.lock();
        try {
            McpConnection known = connections.get(server);
            if (known != null) {
                return known;
            }
            McpConnection made = connector.apply(session.telemetry());
            connections.put(server, made);
            return made;
        } finally {
            connecting.unlock();
        }
    }

    private Object permit(Fields request) throws Exception {
        CanUseTool callback = options.get(Option.CAN_USE_TOOL);
        if (callback == null) {
            return Decision.deny("The host has no permission callback.").wire();
        }
        Wire.ControlRequestLine line = Wire.ControlRequestLine.read(request);
        Fields tool = request.optional("tool");
        Object given = tool == null ? null : tool.value("arguments");
        Fields metadata = request.optional("metadata");
        Fields about = metadata == null ? Fields.empty() : metadata;
        String callId = about.text("tool_call_id");
        Wire.ControlMetadata known = line.metadata();
        Decision decision = callback.decide(new PermissionRequest(request.text("session_id"), request.text("prompt_id"),
                callId.isEmpty() ? request.text("tool_use_id") : callId, tool == null ? "" : tool.text("name"),
                Json.of(given == null ? Map.of() : given), about.text("reason"), about.text("blocked_path"), about.text("agent_id"),
                known == null ? null : known.confirmation()));
        return (decision == null ? Decision.deny("The host did not decide.") : decision).wire();
    }

    /** Ends a question without an answer. */
    void withdraw(String requestId) {
        Question question;
        lock.lock();
        try {
            question = open.remove(requestId);
        } finally {
            lock.unlock();
        }
        if (question != null) {
            question.cancel();
        }
    }

    /** Ends all questions, or those of one turn, without an answer. */
    void cancel(@Nullable Turn turn) {
        List<Question> cancelled = new ArrayList<>();
        lock.lock();
        try {
            open.values().removeIf(question -> (turn == null || question.turn == turn) && cancelled.add(question));
        } finally {
            lock.unlock();
        }
        cancelled.forEach(Question::cancel);
    }

    private void leave() {
        lock.lock();
        try {
            running--;
            isIdle.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Ends all callbacks and waits for those that heed their interruption. */
    void close(long deadline) {
        cancel(null);
        lock.lock();
        try {
            long left = deadline - System.nanoTime();
            while (running > 0 && left > 0) {
                left = isIdle.awaitNanos(left);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            lock.unlock();
        }
        for (McpConnection connection : connections.values()) {
            try {
                connection.close();
            } catch (RuntimeException e) {
                session.logger().log(Level.WARNING, "tool server", e);
            }
        }
    }

}
