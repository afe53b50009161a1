package io.github.qwenagent.suite;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Fails a test that leaves a child process, a thread of the SDK (virtual ones included) or a pipe. */
final class NoLeaks implements BeforeEachCallback, AfterEachCallback {
    private static final Pattern THREAD = Pattern.compile("\"name\": \"(qwen-[^\"]*)\"");
    private static long pipesBefore;

    @Override
    public void beforeEach(ExtensionContext context) {
        pipesBefore = pipes();
    }

    @Override
    public void afterEach(ExtensionContext context) {
        Processes.until("no child is left", () -> Processes.children(ProcessHandle.current().pid()).isEmpty());
        Processes.until("no thread of the SDK is left", () -> platformThreads().isEmpty());
        if (Runtime.version().feature() >= 21) {
            Processes.until("no virtual thread is left", () -> virtualThreads().isEmpty());
        }
        Processes.until("no pipe is left", () -> pipes() <= pipesBefore);
    }

    private static long pipes() {
        try (var files = Files.list(Path.of("/proc/self/fd"))) {
            return files.filter(NoLeaks::isPipe).count();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static boolean isPipe(Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).toString().startsWith("pipe:");
        } catch (IOException e) {
            return false;
        }
    }

    static List<String> platformThreads() {
        return Thread.getAllStackTraces().keySet().stream().map(Thread::getName).filter(name -> name.startsWith("qwen-")).toList();
    }

    /** Returns the names of the SDK's threads in a dump, which has virtual threads too. */
    private static List<String> virtualThreads() {
        try {
            Path folder = Files.createTempDirectory("threads-");
            Path file = folder.resolve("dump.json");
            Class<?> format = Class.forName("com.sun.management.HotSpotDiagnosticMXBean$ThreadDumpFormat");
            Class<?> type = Class.forName("com.sun.management.HotSpotDiagnosticMXBean");
            Object bean = ManagementFactory.getPlatformMXBean(type.asSubclass(java.lang.management.PlatformManagedObject.class));
            Object json = format.getField("JSON").get(null);
            type.getMethod("dumpThreads", String.class, format).invoke(bean, file.toString(), json);
            Matcher names = THREAD.matcher(Files.readString(file));
            Files.delete(file);
            Files.delete(folder);
            return names.results().map(result -> result.group(1)).toList();
        } catch (IOException | ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }
}
