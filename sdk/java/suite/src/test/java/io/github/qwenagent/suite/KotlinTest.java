package io.github.qwenagent.suite;

import static io.github.qwenagent.suite.Place.call;
import static io.github.qwenagent.suite.Place.say;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Callers in Kotlin need nothing extra: neither annotations nor overloads are in their way, and warnings are errors. */
class KotlinTest extends SuiteTest {
    private static String run(Place place, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElseThrow()));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(place.env);
        builder.environment().put("QWEN_BIN", Place.binary().toString());
        Process process = builder.start();
        process.getOutputStream().close();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), output);
        return output;
    }

    @Test
    void anExampleInKotlinCompilesAndRuns() throws Exception {
        Place place = place(say(call("mcp__calc__add", Map.of("x", 2, "y", 3))), say("5"), say(call("structured_output", Map.of("city", "Paris"))));
        Path out = place.folder.resolve("kotlin");
        // The compiler warns about entries that do not exist.
        String path = Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator)).filter(entry -> Files.exists(Path.of(entry)))
                .collect(Collectors.joining(File.pathSeparator));
        run(place, "-cp", path, "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler", "-no-stdlib", "-no-reflect", "-Werror", "-jvm-target", "17", "-cp", path, "-d",
                out.toString(), Place.root().resolve("sdk/java/examples/src/main/kotlin/QuickStart.kt").toString());
        assertTrue(Files.isDirectory(out));
        String output = run(place, "-cp", out + File.pathSeparator + path, "QuickStartKt");
        assertTrue(output.contains("5\ndone") && output.contains("Paris"), output);
    }
}
