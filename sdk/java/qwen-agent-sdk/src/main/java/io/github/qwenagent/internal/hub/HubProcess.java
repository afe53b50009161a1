package io.github.qwenagent.internal.hub;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The hub's operating-system process and its pipes. The end of its input ends it, so it ends with this program, however that
 * happens: the system closes the pipes.
 */
final class HubProcess {
    /** Exit codes above this are signals, as the JDK reports them. */
    private static final int SIGNAL_BASE = 128;
    private static final int MAX_SIGNAL = 64;

    /** How a process ended. The code is -1 if a signal ended it; the signal is 0 if it exited by itself. */
    record Exit(int code, int signal) {
        @Override
        public String toString() {
            return signal != 0 ? "signal " + signal : "exit code " + code;
        }
    }

    private final Process process;

    private HubProcess(Process process) {
        this.process = process;
    }

    static HubProcess start(List<String> command, Map<String, String> environment, @Nullable Path directory) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().putAll(environment);
        if (directory != null) {
            builder.directory(directory.toFile());
        }
        return new HubProcess(builder.start());
    }

    OutputStream input() {
        return process.getOutputStream();
    }

    InputStream output() {
        return process.getInputStream();
    }

    InputStream errors() {
        return process.getErrorStream();
    }

    long pid() {
        return process.pid();
    }

    /** Ends the process and all that it started at once: a program that is not a hub may leave its children behind. */
    void kill() {
        List<ProcessHandle> started = process.descendants().toList();
        process.destroyForcibly();
        started.forEach(ProcessHandle::destroyForcibly);
    }

    boolean waitFor(long milliseconds) throws InterruptedException {
        return process.waitFor(milliseconds, TimeUnit.MILLISECONDS);
    }

    /** Returns how the process ended. It must have ended. */
    Exit exit() {
        int code = process.exitValue();
        boolean isSignal = code > SIGNAL_BASE && code <= SIGNAL_BASE + MAX_SIGNAL;
        return isSignal ? new Exit(-1, code - SIGNAL_BASE) : new Exit(code, 0);
    }
}
