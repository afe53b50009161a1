package io.github.qwenagent.suite;

import static io.github.qwenagent.suite.Place.call;
import static io.github.qwenagent.suite.Place.gate;
import static io.github.qwenagent.suite.Place.say;
import static io.github.qwenagent.suite.Place.touch;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.Message;
import io.github.qwenagent.Result;
import io.github.qwenagent.Session;
import io.github.qwenagent.Telemetry;
import io.github.qwenagent.Tool;
import io.github.qwenagent.ToolServer;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;

class PromisesTest extends SuiteTest {
    private static final String TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

    @Test
    void theLoggerOfTheHostGetsRecords() {
        Place place = place(say("logged"));
        RecordingLogger records = new RecordingLogger();
        AgentManager manager = place.manager(place.options().logger(records));
        Session session = manager.createSession();
        session.run("Hello.");
        manager.close();
        assertEquals(1, records.count("turn ended: " + session.id()));
        assertEquals(1, records.with("hub worker_start").size());
        assertTrue(records.with("hub worker_start").get(0).contains("pid="));
        assertEquals(1, records.count("hub started"));
        assertEquals(1, records.count("session closed: " + session.id()));
    }

    /** A tracer of the host. */
    private static final class Spans implements Telemetry {
        private final List<String> turns = new CopyOnWriteArrayList<>();
        private final List<String> tools = new CopyOnWriteArrayList<>();
        private final List<Result> ended = new CopyOnWriteArrayList<>();

        @Override
        public TurnSpan startTurn(String sessionId, String promptId) {
            turns.add(promptId);
            return new TurnSpan() {
                @Override
                public void end(Result result, Throwable failure) {
                    ended.add(result);
                }

                @Override
                public String traceparent() {
                    return "00-" + TRACE + "-00f067aa0ba902b7-01";
                }

                @Override
                public String tracestate() {
                    return "vendor=1";
                }
            };
        }

        @Override
        public <T> T inTool(String server, String tool, String traceparent, Callable<T> call) throws Exception {
            tools.add(server + "/" + tool + " " + traceparent);
            return call.call();
        }
    }

    /** The arguments of the tool. */
    record Add(int x, int y) {}

    @Test
    void oneTraceLeadsFromTheSpanOfTheHostToTheTool() throws IOException {
        Place place = place(say(call("mcp__calc__add", new Add(1, 2))), say("3"));
        Path file = place.home.resolve("spans.jsonl");
        Spans spans = new Spans();
        AgentManager manager = place.manager(place.options().telemetry(spans).extraArgs("--telemetry", "--telemetry-outfile=" + file)
                .allowedTools("mcp__calc__*").tools(ToolServer.of("calc", Tool.of("add", "Adds", Add.class, in -> in.x() + in.y()))));
        Result result = manager.run("Add.");
        manager.close();
        assertEquals(List.of(result.meta().promptId()), spans.turns);
        assertEquals(List.of(result), spans.ended);
        assertTrue(spans.tools.get(0).startsWith("calc/add 00-" + TRACE), spans.tools.toString());
        assertTrue(Files.readString(file).contains(TRACE));
        assertNotNull(Telemetry.NONE.startTurn("s", "p"));
    }

    @Test
    void theModuleExportsOnePackageAndNeedsNothingAtRunTime() {
        ModuleDescriptor module = ModuleFinder.of(jar("qwen-agent-sdk-0")).findAll().iterator().next().descriptor();
        assertEquals("io.github.qwenagent", module.name());
        assertEquals(List.of("io.github.qwenagent"), module.exports().stream().map(ModuleDescriptor.Exports::source).toList());
        Set<String> required = module.requires().stream().filter(each -> !each.modifiers().contains(ModuleDescriptor.Requires.Modifier.STATIC))
                .map(ModuleDescriptor.Requires::name).collect(Collectors.toSet());
        assertEquals(Set.of("java.base"), required);
    }

    /** Returns the jar on the class path whose name begins so. */
    private static Path jar(String start) {
        return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator)).map(Path::of)
                .filter(path -> path.getFileName().toString().startsWith(start)).findFirst().orElseThrow();
    }

    private static List<String> snippets() throws IOException {
        Matcher blocks = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(Files.readString(Place.root().resolve("sdk/java/README.md")));
        return blocks.results().map(block -> block.group(1)).toList();
    }

    /** Compiles a block of the README as the body of a program and returns its folder. */
    private Path compile(Place place, String name, String before, String body) throws IOException {
        Path folder = Files.createDirectory(place.folder.resolve(name));
        Path source = Files.writeString(folder.resolve(name + ".java"), "import io.github.qwenagent.*;\nimport java.nio.file.Path;\npublic class " + name
                + " {\n    public static void main(String[] arguments) throws Exception {\n" + before + body + "\n    }\n}\n");
        int exit = ToolProvider.getSystemJavaCompiler().run(null, null, null, "-proc:none", "-cp", System.getProperty("java.class.path"), "-d",
                folder.toString(), source.toString());
        assertEquals(0, exit, name);
        return folder;
    }

    private static Process start(Place place, List<String> arguments, Map<String, String> further) throws IOException {
        List<String> command = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElseThrow(), "-XX:TieredStopAtLevel=1"));
        command.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(command).directory(place.work.toFile()).redirectErrorStream(true);
        builder.environment().putAll(place.env);
        builder.environment().put("QWEN_BIN", Place.binary().toString());
        builder.environment().putAll(further);
        return builder.start();
    }

    private static String run(Place place, String input, List<String> arguments, Map<String, String> further) throws Exception {
        Process process = start(place, arguments, further);
        process.getOutputStream().write(input.getBytes(StandardCharsets.UTF_8));
        process.getOutputStream().close();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), output);
        return output;
    }

    @Test
    void theSixLinesOfTheReadmeWorkAsPrinted() throws Exception {
        Place place = place();
        String first = snippets().get(0);
        assertEquals(6, first.strip().split("\n").length);
        Path folder = compile(place, "Readme", "", first);
        String output = run(place, "", List.of("-cp", folder + File.pathSeparator + System.getProperty("java.class.path"), "Readme"), Map.of());
        assertTrue(output.length() > 20 && output.contains("status done"), output);
    }

    @Test
    void theOtherBlocksOfTheReadmeCompile() throws Exception {
        Place place = place();
        compile(place, "Second", "AgentManager agents = AgentManager.open();\n", snippets().get(1));
        compile(place, "Third", "", snippets().get(2));
    }

    private static String example(Place place, String name, String input) throws Exception {
        return run(place, input, List.of("-cp", System.getProperty("java.class.path"), "io.github.qwenagent.examples." + name), Map.of());
    }

    private static void assertContains(String output, String... wanted) {
        for (String each : wanted) {
            assertTrue(output.contains(each), output);
        }
    }

    @Test
    void theExamplesWork() throws Exception {
        assertContains(example(place(say("A small ", "project.")), "QuickStart", ""), "A small project.", "done after");
        Place dialog = place(say(touch("hello.txt")), say(touch("no.txt")), say("Created."));
        assertContains(example(dialog, "PermissionDialog", "y\nn\n"), "touch hello.txt", "Created.", "refused: run_shell_command");
        assertTrue(dialog.exists("hello.txt") && !dialog.exists("no.txt"));
        assertContains(example(place(say(call("mcp__calculator__add", Map.of("a", 20, "b", 22))), say(call("mcp__calculator__divide", Map.of("a", 42, "b", 2))),
                say("It is 21.")), "CalculatorTool", ""), "mcp__calculator__divide", "It is 21.");
        assertContains(example(looping(say("s")), "WorkerPool", ""), "part 0. s", "part 5. s");
        assertContains(example(place(say("ok"), say("42"), say("43")), "ResumeAndFork", ""), "resumed: 42", "forked: 43 true");
        assertContains(example(place(say(call("structured_output", Map.of("verdict", "approve", "issues", List.of("none"))))), "StructuredResult", ""),
                "APPROVE: [none]");
    }

    @Test
    void theStreamingPageShowsTheAnswerAndClosingItInterruptsTheTurn() throws Exception {
        Place place = place(say("Hello ", "page."), say("half", gate("never")));
        Process server = start(place, List.of("-cp", System.getProperty("java.class.path"), "io.github.qwenagent.examples.StreamingWeb"), Map.of());
        BufferedReader output = new BufferedReader(new InputStreamReader(server.getInputStream(), StandardCharsets.UTF_8));
        String address = output.readLine();
        HttpClient client = HttpClient.newHttpClient();
        String page = client.send(HttpRequest.newBuilder(URI.create(address)).build(), HttpResponse.BodyHandlers.ofString()).body();
        assertTrue(page.contains("EventSource"), page);
        HttpRequest ask = HttpRequest.newBuilder(URI.create(address + "stream?prompt=Say%20hello.")).build();
        String events = client.send(ask, HttpResponse.BodyHandlers.ofString()).body();
        assertContains(events, "data: \"Hello \"", "event: done\ndata: done");
        // The server ends with its input, and with it the turn that runs.
        var left = client.send(HttpRequest.newBuilder(URI.create(address + "stream?prompt=Wait")).build(), HttpResponse.BodyHandlers.ofInputStream());
        assertTrue(left.body().read() > 0);
        server.getOutputStream().close();
        place.control("GET", "gone/1");
        server.waitFor();
        left.body().close();
    }

    @Test
    void thePackagesWorkAsModulesInACleanProjectWithTheirOwnProgram() throws Exception {
        Place place = place();
        Path runtime = place.folder.resolve("qwen-agent-sdk-runtime-linux.jar");
        String platform = "linux-" + (System.getProperty("os.arch").equals("amd64") ? "x86_64" : System.getProperty("os.arch"));
        Process pack = new ProcessBuilder(Place.root().resolve("sdk/java/runtime-jar").toString(), jar("qwen-agent-sdk-runtime-").toString(),
                shrunk(place).toString(), platform, runtime.toString()).inheritIO().start();
        assertEquals(0, pack.waitFor());
        Path sources = Files.createDirectories(place.folder.resolve("host/app"));
        Files.writeString(sources.getParent().resolve("module-info.java"), "module host { requires io.github.qwenagent; opens app; }\n");
        Files.writeString(sources.resolve("Main.java"), """
                package app;
                import io.github.qwenagent.*;
                public class Main {
                    record Add(int x, int y) {}
                    public static void main(String[] arguments) {
                        var calc = ToolServer.of("calc", Tool.of("add", "Adds", Add.class, a -> a.x() + a.y()));
                        try (var agents = AgentManager.open(AgentOptions.builder().model("demo").tools(calc).build())) {
                            System.out.println(agents.run("Hello.").status());
                        }
                    }
                }
                """);
        String modules = jar("qwen-agent-sdk-0") + File.pathSeparator + runtime;
        int exit = ToolProvider.getSystemJavaCompiler().run(null, null, null, "-proc:none", "--module-path", modules, "-d",
                place.folder.resolve("out").toString(), sources.getParent().resolve("module-info.java").toString(), sources.resolve("Main.java").toString());
        assertEquals(0, exit);
        Map<String, String> environment = Map.of("QWEN_BIN", "", "PATH", "/nowhere", "XDG_CACHE_HOME", place.home.resolve("cache").toString());
        String output = run(place, "", List.of("--module-path", modules + File.pathSeparator + place.folder.resolve("out"), "-m", "host/app.Main"), environment);
        assertEquals("done\n", output);
    }

    /** Returns the binary without its debug information, if the machine can remove it. */
    private static Path shrunk(Place place) throws Exception {
        Path target = place.folder.resolve("qwen");
        try {
            Process strip = new ProcessBuilder("strip", "-o", target.toString(), Place.binary().toString()).inheritIO().start();
            return strip.waitFor() == 0 ? target : Place.binary();
        } catch (IOException e) {
            return Place.binary();
        }
    }

    @Test
    void aProcessThatIsNotTheHostsIsNeverTouched() {
        // The SDK ends only the hub that it has started.
        Place place = place(say("one"));
        AgentManager first = place.manager();
        AgentManager second = place.manager();
        first.close();
        assertTrue(Processes.isRunning(second.pid()));
        assertEquals("one", second.run("Hello.").text());
        assertFalse(Processes.isRunning(first.pid()));
        AgentOptions.defaults();
        Message.Meta meta = second.createSession().run("/help").meta();
        assertEquals(meta.raw(), meta.toString());
    }
}
