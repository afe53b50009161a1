import io.github.qwenagent.AgentManager;
import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.Message;
import io.github.qwenagent.Session;
import io.github.qwenagent.SessionOptions;
import io.github.qwenagent.Turn;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Measures what the SDK itself costs: processor time for each message of a long stream, and memory for each open session. */
public final class Bench {
    private static final int CHUNKS = 20_000;
    private static final int SESSIONS = 200;

    private Bench() {}

    /** Measures; with `first` it runs to the first message and leaves, with `archive` it runs a whole turn. */
    public static void main(String[] arguments) throws Exception {
        if (!arguments[0].startsWith("/")) {
            first(arguments[0].equals("archive"));
            return;
        }
        Path folder = Path.of(arguments[0]);
        Path script = Files.writeString(folder.resolve("script.json"), "[[{\"repeat\":" + CHUNKS + ",\"text\":\"piece \"}]]");
        System.out.println("\nJava SDK on " + System.getProperty("java.vm.version"));
        AgentOptions options = AgentOptions.builder().cwd(folder).model("script:" + script).env("QWEN_HOME", folder.resolve("home").toString()).build();
        try (AgentManager agents = AgentManager.open(options)) {
            row("processor time of the host per event, first " + CHUNKS + " chunks", perEvent(agents), "µs");
            for (int i = 0; i < 4; i++) {
                perEvent(agents);
            }
            row("the same once the JVM has compiled it", perEvent(agents), "µs");
            row("memory of the host per open session", perSession(agents), "KiB");
        }
    }

    private static void row(String what, double measured, String unit) {
        System.out.printf("  %-52s %9.2f %s%n", what, measured, unit);
    }

    private static void first(boolean isComplete) {
        try (AgentManager agents = AgentManager.open(AgentOptions.builder().model("demo").build());
                Session session = agents.createSession(); Turn turn = session.stream("Hello.")) {
            for (Message message : turn) {
                System.out.println(message.meta().promptId());
                if (!isComplete) {
                    // The figure ends here: the end of the hub is not a part of it.
                    Runtime.getRuntime().halt(0);
                }
            }
        }
    }

    /** Returns the processor time of this process for each message, in microseconds. */
    private static double perEvent(AgentManager agents) {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        try (Session session = agents.createSession()) {
            long before = system.getProcessCpuTime();
            int count = 0;
            try (Turn turn = session.stream("Go.")) {
                for (Message message : turn) {
                    count += message.meta().seq() == 0 ? 1 : 0;
                }
            }
            if (count < CHUNKS) {
                throw new IllegalStateException(count + " messages of " + CHUNKS + " chunks");
            }
            return (system.getProcessCpuTime() - before) / 1000.0 / count;
        }
    }

    /** Returns the memory of this process for each open session, in KiB. */
    private static double perSession(AgentManager agents) {
        long before = inUse();
        List<Session> open = new ArrayList<>();
        for (int i = 0; i < SESSIONS; i++) {
            open.add(agents.createSession(SessionOptions.defaults()));
        }
        double perSession = (inUse() - before) / 1024.0 / SESSIONS;
        open.forEach(Session::close);
        return perSession;
    }

    private static long inUse() {
        System.gc();
        System.gc();
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }
}
