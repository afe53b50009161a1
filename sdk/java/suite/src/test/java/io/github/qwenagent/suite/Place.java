package io.github.qwenagent.suite;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.Json;
import io.github.qwenagent.Session;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A home, a workspace and a scripted model behind real HTTP. */
final class Place implements AutoCloseable {
    /** Bounds every wait of the suite; a test that needs it fails. */
    static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    final Path folder;
    final Path home;
    final Path work;
    final Map<String, String> env;
    private final Process model;
    private final String origin;
    private final List<AgentManager> managers = new ArrayList<>();

    private Place(Object script) {
        try {
            folder = Files.createTempDirectory("qwen-suite-");
            home = Files.createDirectory(folder.resolve("home"));
            work = Files.createDirectory(folder.resolve("work"));
            Path file = Files.writeString(folder.resolve("script.json"), Json.of(script).toString());
            model = new ProcessBuilder(mockModel().toString(), "--script", file.toString()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            BufferedReader output = new BufferedReader(new InputStreamReader(model.getInputStream(), StandardCharsets.UTF_8));
            Json hello = Json.parse(output.readLine());
            origin = text(hello, "origin");
            env = Map.of("HOME", home.toString(), "QWEN_HOME", home.resolve(".qwen").toString(), "OPENAI_BASE_URL", text(hello, "base_url"),
                    "OPENAI_API_KEY", "sk-test", "OPENAI_MODEL", "mock");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Starts a model that gives these replies. */
    static Place of(Map<?, ?>... replies) {
        return new Place(Map.of("replies", List.of(replies)));
    }

    /** Starts a model that begins again after its last reply. */
    static Place looping(Map<?, ?>... replies) {
        return new Place(Map.of("replies", List.of(replies), "loop", true));
    }

    static Path root() {
        Path folder = Path.of("").toAbsolutePath();
        while (!Files.exists(folder.resolve("sdk/BEHAVIOURS.md"))) {
            folder = folder.getParent();
        }
        return folder;
    }

    private static Path program(String variable, String name) {
        String given = System.getenv(variable);
        return given == null || given.isEmpty() ? root().resolve("target/debug").resolve(name) : Path.of(given);
    }

    static Path binary() {
        return program("QWEN_BIN", "qwen");
    }

    private static Path mockModel() {
        return program("MOCK_MODEL_BIN", "mock-model");
    }

    static String text(Json object, String name) {
        Json value = object.get(name);
        return value != null && value.value() instanceof String text ? text : "";
    }

    /** One reply of the model; a string is a piece of text. */
    static Map<String, Object> say(Object... steps) {
        List<Object> list = new ArrayList<>();
        for (Object step : steps) {
            list.add(step instanceof String text ? Map.of("text", text) : step);
        }
        return Map.of("steps", list);
    }

    /** A reply to requests that contain a text. */
    static Map<String, Object> sayAbout(String match, Object... steps) {
        Map<String, Object> reply = new LinkedHashMap<>(say(steps));
        reply.put("match", match);
        return reply;
    }

    static Map<String, Object> call(String name, Object arguments) {
        return Map.of("tool_call", Map.of("name", name, "arguments", arguments));
    }

    static Map<String, Object> touch(String name) {
        return call("run_shell_command", Map.of("command", "touch " + name, "description", "make a file"));
    }

    static Map<String, Object> usage(int input, int output) {
        return Map.of("usage", Map.of("prompt_tokens", input, "completion_tokens", output));
    }

    /** Holds the model until the test opens it. */
    static Map<String, Object> gate(String name) {
        return Map.of("gate", name);
    }

    String control(String method, String path) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(origin + "/control/" + path)).timeout(PATIENCE)
                .method(method, HttpRequest.BodyPublishers.noBody()).build();
        try {
            HttpResponse<String> answer = CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new AssertionError(path + ": " + answer.body());
            }
            return answer.body();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    void open(String gate) {
        control("POST", "open/" + gate);
    }

    /** Returns the bodies of the requests to the model. */
    List<Json> requests() {
        List<Json> bodies = new ArrayList<>();
        for (Object each : (List<?>) Json.parse(control("GET", "requests")).value()) {
            bodies.add(Json.of(each).get("body"));
        }
        return bodies;
    }

    /** Returns what messages of these roles said in the last request. */
    List<String> texts(String... roles) {
        List<Json> requests = requests();
        List<String> found = new ArrayList<>();
        if (requests.isEmpty()) {
            return found;
        }
        for (Object each : (List<?>) requests.get(requests.size() - 1).get("messages").value()) {
            Json message = Json.of(each);
            if (Set.of(roles).contains(text(message, "role"))) {
                found.add(content(message.get("content")));
            }
        }
        return found;
    }

    private static String content(Json content) {
        if (content == null) {
            return "";
        }
        if (content.value() instanceof List<?> parts) {
            StringBuilder joined = new StringBuilder();
            parts.forEach(part -> joined.append(text(Json.of(part), "text")));
            return joined.toString();
        }
        return String.valueOf(content.value());
    }

    String history() {
        return String.join("\n", texts("user", "assistant"));
    }

    AgentOptions.Builder options() {
        return AgentOptions.builder().cwd(work).env(env).binaryPath(binary());
    }

    /** Opens a manager that is closed with the place. */
    AgentManager manager(AgentOptions.Builder options) {
        AgentManager manager = AgentManager.open(options.build());
        managers.add(manager);
        return manager;
    }

    AgentManager manager() {
        return manager(options());
    }

    Session session(AgentOptions.Builder options) {
        return manager(options).createSession();
    }

    Session session() {
        return session(options());
    }

    /** Writes a file into the workspace. */
    Path file(String name, String text) {
        try {
            return Files.writeString(work.resolve(name), text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    boolean exists(String name) {
        return Files.exists(work.resolve(name));
    }

    @Override
    public void close() {
        try {
            control("POST", "reset");
            managers.forEach(AgentManager::close);
            model.getOutputStream().close();
            model.waitFor();
            try (var files = Files.walk(folder)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.deleteIfExists(file);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
