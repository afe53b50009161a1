package io.github.qwenagent;

import io.github.qwenagent.internal.json.Fields;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** Serves the tools of one server to one session, as an MCP server does. */
final class ToolConnection implements McpConnection {
    private static final int METHOD_NOT_FOUND = -32601;
    private static final int INVALID_PARAMETERS = -32602;

    private final String server;
    private final List<Tool> tools;
    private final Telemetry telemetry;
    /** The threads of the calls that run, by their request id. */
    private final Map<Object, Thread> calls = new ConcurrentHashMap<>();

    ToolConnection(String server, List<Tool> tools, Telemetry telemetry) {
        this.server = server;
        this.tools = tools;
        this.telemetry = telemetry;
    }

    @Override
    public @Nullable Json handle(Json message) throws Exception {
        Fields request = Fields.of(message.value());
        if (request == null) {
            return null;
        }
        Object id = request.value("id");
        Fields given = request.optional("params");
        Fields parameters = given == null ? Fields.empty() : given;
        switch (request.text("method")) {
            case "initialize":
                return answer(id, Map.of("protocolVersion", parameters.text("protocolVersion"), "capabilities", Map.of("tools", Map.of()),
                        "serverInfo", Map.of("name", server, "version", "1.0.0")));
            case "ping":
                return answer(id, Map.of());
            case "tools/list":
                return answer(id, Map.of("tools", tools.stream().map(Tool::listing).toList()));
            case "tools/call":
                return call(id, parameters);
            case "notifications/cancelled":
                Object cancelled = parameters.value("requestId");
                Thread thread = cancelled == null ? null : calls.get(cancelled);
                if (thread != null) {
                    thread.interrupt();
                }
                return null;
            default:
                return id == null ? null : failure(id, METHOD_NOT_FOUND, "There is no method " + request.text("method") + ".");
        }
    }

    private static Json answer(@Nullable Object id, Object result) {
        Map<String, @Nullable Object> answer = new LinkedHashMap<>();
        answer.put("jsonrpc", "2.0");
        answer.put("id", id);
        answer.put("result", result);
        return Json.of(answer);
    }

    private static Json failure(@Nullable Object id, int code, String message) {
        Map<String, @Nullable Object> answer = new LinkedHashMap<>();
        answer.put("jsonrpc", "2.0");
        answer.put("id", id);
        answer.put("error", Map.of("code", code, "message", message));
        return Json.of(answer);
    }

    private Json call(@Nullable Object id, Fields parameters) throws Exception {
        Object given = parameters.value("arguments");
        Object arguments = given == null ? Map.of() : given;
        Fields meta = parameters.optional("_meta");
        String traceparent = meta == null ? "" : meta.text("traceparent");
        for (Tool tool : tools) {
            if (!tool.name().equals(parameters.text("name"))) {
                continue;
            }
            Object key = id == null ? new Object() : id;
            calls.put(key, Thread.currentThread());
            try {
                return answer(id, telemetry.inTool(server, tool.name(), traceparent, () -> tool.run(arguments)).wire());
            } finally {
                calls.remove(key);
            }
        }
        return failure(id, INVALID_PARAMETERS, "There is no tool " + parameters.text("name") + ".");
    }

    @Override
    public void close() {
        calls.values().forEach(Thread::interrupt);
    }
}
