package io.github.qwenagent;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A group of tools. The agent sees a tool as `mcp__server__tool`. */
public final class ToolServer {
    private final String name;
    /** How the worker starts or reaches the server; null for one in this process. */
    private final @Nullable Map<String, Object> external;
    /** Makes a session's connection to a server in this process. */
    private final @Nullable Function<Telemetry, McpConnection> connect;

    private ToolServer(String name, @Nullable Map<String, Object> external, @Nullable Function<Telemetry, McpConnection> connect) {
        if (!Tool.NAME.matcher(name).matches() || name.contains("__")) {
            throw new IllegalArgumentException("\"" + name
                    + "\" is not a name for a tool server. Use letters, digits, '.', '_' and '-', and no \"__\".");
        }
        this.name = name;
        this.external = external;
        this.connect = connect;
    }

    /**
     * Groups tools that run in this process.
     *
     * @param name the server's name
     * @param tools the tools
     * @return the server
     * @throws IllegalArgumentException if the name is not a server's name, or two tools have the same name
     */
    public static ToolServer of(String name, Tool... tools) {
        Set<String> names = new HashSet<>();
        for (Tool tool : tools) {
            if (!names.add(tool.name())) {
                throw new IllegalArgumentException("The server " + name + " has two tools named " + tool.name() + ".");
            }
        }
        List<Tool> all = List.of(tools);
        return new ToolServer(name, null, telemetry -> new ToolConnection(name, all, telemetry));
    }

    /**
     * Names an MCP server that the worker starts as a child process.
     *
     * @param name the server's name
     * @param command the program
     * @param arguments its arguments
     * @return the server
     */
    public static ToolServer command(String name, String command, String... arguments) {
        return new ToolServer(name, Map.of("type", "stdio", "command", command, "args", List.of(arguments)), null);
    }

    /**
     * Names an MCP server that the worker reaches over HTTP.
     *
     * @param name the server's name
     * @param url its address
     * @param headers headers of every request
     * @return the server
     */
    public static ToolServer http(String name, String url, Map<String, String> headers) {
        Map<String, Object> external = new LinkedHashMap<>(Map.of("type", "http", "url", url));
        if (!headers.isEmpty()) {
            external.put("headers", headers);
        }
        return new ToolServer(name, external, null);
    }

    /**
     * Makes any MCP server in this process a tool server. Each session has its own connection, which is made with the first
     * message.
     *
     * @param name the server's name
     * @param connect makes a connection
     * @return the server
     */
    public static ToolServer connecting(String name, Supplier<? extends McpConnection> connect) {
        return new ToolServer(name, null, telemetry -> connect.get());
    }

    String name() {
        return name;
    }

    @Nullable Map<String, Object> external() {
        return external;
    }

    @Nullable Function<Telemetry, McpConnection> connector() {
        return connect;
    }
}
