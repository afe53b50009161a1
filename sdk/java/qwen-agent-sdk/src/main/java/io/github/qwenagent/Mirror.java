package io.github.qwenagent;

import java.io.IOException;
import java.nio.channels.Channels;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** Copies a session between its file and the host's store. */
final class Mirror {
    private final SessionStore store;
    private final ReentrantLock lock = new ReentrantLock();
    /** The session that is copied from the next flush on; null if it stays the same. */
    private final AtomicReference<@Nullable String> fork = new AtomicReference<>();
    private String sessionId;
    private Path file;
    private long stored;

    private Mirror(SessionStore store, String sessionId, Path file) {
        this.store = store;
        this.sessionId = sessionId;
        this.file = file;
    }

    /** Returns the mirror of a session; null without a store. */
    static @Nullable Mirror of(@Nullable SessionStore store, String sessionId, Map<String, String> env) {
        return store == null ? null : new Mirror(store, sessionId, sessionFile(env, sessionId));
    }

    /** Returns the file in which workers with this environment keep a session. */
    static Path sessionFile(Map<String, String> env, String sessionId) {
        String home = variable(env, "QWEN_HOME");
        Path folder = home.isEmpty() ? Path.of(variable(env, "HOME"), ".qwen") : Path.of(home);
        return folder.resolve("sessions").resolve(sessionId + ".jsonl");
    }

    private static String variable(Map<String, String> env, String name) {
        String own = env.get(name);
        String inherited = own == null ? System.getenv(name) : own;
        return inherited == null ? "" : inherited;
    }

    /** Writes the session's file from the store, unless the file exists. */
    void restore() {
        lock.lock();
        try {
            byte[] text = store.load(sessionId);
            if (text == null) {
                return;
            }
            stored = text.length;
            if (Files.exists(file)) {
                return;
            }
            Files.createDirectories(file.getParent(), PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
            Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
            Files.write(file, text);
        } catch (IOException | RuntimeException e) {
            throw failure(e);
        } finally {
            lock.unlock();
        }
    }

    private QwenException.StoreFailed failure(Exception cause) {
        return new QwenException.StoreFailed("Cannot store the session " + sessionId + ": " + cause.getMessage(), cause);
    }

    /** Copies a fork of the session from the next flush on. It never waits for the store. */
    void follow(String forkId) {
        fork.set(forkId);
    }

    /** Passes new lines on. The worker has synced them before it wrote the terminal record. */
    void flush() {
        lock.lock();
        try {
            String next = fork.getAndSet(null);
            copy();
            if (next != null) {
                sessionId = next;
                stored = 0;
                file = file.resolveSibling(next + ".jsonl");
                copy();
            }
        } catch (IOException | RuntimeException e) {
            throw failure(e);
        } finally {
            lock.unlock();
        }
    }

    private void copy() throws IOException {
        byte[] added;
        try (SeekableByteChannel channel = Files.newByteChannel(file, StandardOpenOption.READ)) {
            channel.position(stored);
            added = Channels.newInputStream(channel).readAllBytes();
        } catch (NoSuchFileException e) {
            return;
        }
        int end = added.length;
        while (end > 0 && added[end - 1] != '\n') {
            end--;
        }
        if (end > 0) {
            store.append(sessionId, Arrays.copyOf(added, end));
            stored += end;
        }
    }
}
