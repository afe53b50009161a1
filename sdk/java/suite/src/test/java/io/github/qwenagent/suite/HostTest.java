package io.github.qwenagent.suite;

import static io.github.qwenagent.suite.Place.gate;
import static io.github.qwenagent.suite.Place.say;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class HostTest extends SuiteTest {
    @Test
    void noChildOutlivesAHostThatIsKilledInterruptedOrLeaves() throws Exception {
        for (String ending : List.of("KILL", "INT", "TERM", "exit", "return")) {
            Place place = place(say("half", gate("never")));
            Process host = start(place, ending);
            BufferedReader output = new BufferedReader(new InputStreamReader(host.getInputStream(), StandardCharsets.UTF_8));
            String line = output.readLine();
            long hub = Long.parseLong(line);
            List<Long> processes = new ArrayList<>(Processes.children(hub));
            processes.add(hub);
            if (Character.isUpperCase(ending.charAt(0))) {
                Processes.signal(ending, List.of(host.pid()));
            }
            host.waitFor();
            long gone = System.nanoTime();
            Processes.until("no process is left after " + ending, () -> processes.stream().noneMatch(Processes::isRunning));
            long took = System.nanoTime() - gone;
            assertTrue(took < Duration.ofSeconds(2).toNanos(), ending + ": the last child ended after " + Duration.ofNanos(took));
        }
    }

    private static Process start(Place place, String ending) throws IOException {
        String java = ProcessHandle.current().info().command().orElseThrow();
        ProcessBuilder builder = new ProcessBuilder(java, "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"),
                Host.class.getName(), ending, place.work.toString()).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().putAll(place.env);
        builder.environment().put("QWEN_BIN", Place.binary().toString());
        return builder.start();
    }
}
