package io.github.qwenagent.suite;

import static org.junit.jupiter.api.Assertions.assertAll;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.Json;
import io.github.qwenagent.QwenException;
import io.github.qwenagent.Timeouts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Programs that are not a hub. The list is shared by the languages. */
class BrokenProgramsTest extends SuiteTest {
    @Test
    void aBrokenProgramIsAnErrorThatNamesItsCause() throws IOException {
        String list = Files.readString(Place.root().resolve("sdk/broken-programs.json"));
        List<?> programs = assertInstanceOf(List.class, Json.parse(list).value());
        assertTrue(programs.size() >= 20);
        List<Executable> checks = programs.stream()
                .map(program -> (Map<?, ?>) program)
                .<Executable>map(program -> () -> check(program))
                .toList();
        assertAll(checks);
    }

    private static void check(Map<?, ?> program) throws IOException {
        String kind = String.valueOf(program.get("kind"));
        Path folder = Files.createTempDirectory("broken");
        Path path = folder.resolve("broken");
        Path pids = folder.resolve("pid");
        Object script = program.get("script");
        String content = script == null ? "\u007fELF nonsense" : "#!/bin/sh\necho $$ > " + pids + "\n" + script + "\n";
        Files.writeString(path, content);
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rwxr-xr-x"));
        Duration second = Duration.ofSeconds(1);
        Timeouts timeouts = Timeouts.defaults().withStart(second).withClose(second);
        AgentOptions options = AgentOptions.builder().binaryPath(path).timeouts(timeouts).logger(new RecordingLogger()).build();
        long began = System.nanoTime();
        QwenException wrong = assertThrows(QwenException.class, () -> {
            try (AgentManager manager = AgentManager.open(options)) {
                manager.createSession();
            }
        }, kind);
        long took = (System.nanoTime() - began) / 1_000_000;
        Pattern cause = Pattern.compile(String.valueOf(program.get("cause")));
        assertTrue(cause.matcher(String.valueOf(wrong.getMessage())).find(), kind + ": " + wrong.getMessage());
        assertTrue(took < 3000, kind + " took " + took + " ms");
        if (Files.exists(pids)) {
            long pid = Long.parseLong(Files.readString(pids).strip());
            Processes.until(kind + " ended", () -> !Processes.isRunning(pid));
        }
    }
}
