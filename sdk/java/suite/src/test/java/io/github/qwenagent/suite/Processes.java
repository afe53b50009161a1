package io.github.qwenagent.suite;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Processes of the system, and waiting for them. */
final class Processes {
    private Processes() {}

    /** Waits until something holds. */
    static void until(String what, BooleanSupplier holds) {
        long end = System.nanoTime() + Place.PATIENCE.toNanos();
        while (!holds.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("It never came that " + what);
            }
            LockSupport.parkNanos(5_000_000);
        }
    }

    /** Returns the processes whose parent is the given one, zombies excluded. */
    static List<Long> children(long parent) {
        return ProcessHandle.of(parent).map(handle -> handle.children().map(ProcessHandle::pid).filter(Processes::isRunning).toList())
                .orElse(List.of());
    }

    static boolean isRunning(long pid) {
        try {
            return !Files.readString(Path.of("/proc/" + pid + "/status")).contains("\nState:\tZ");
        } catch (IOException e) {
            return false;
        }
    }

    static void signal(String signal, List<Long> pids) {
        try {
            for (long pid : pids) {
                new ProcessBuilder("/bin/kill", "-" + signal, String.valueOf(pid)).start().waitFor();
            }
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
