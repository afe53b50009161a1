package io.github.qwenagent;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/** Finds the qwen program. */
public final class Binary {
    private Binary() {}

    /** Brings the program along. The artifact qwen-agent-sdk-runtime has an implementation for each platform. */
    public interface Provider {
        /**
         * Opens the program for this platform.
         *
         * @param platform such as `linux-x86_64`
         * @return the program; null if there is none for the platform
         * @throws IOException if it cannot be read
         */
        @Nullable InputStream open(String platform) throws IOException;
    }

    /**
     * Returns the program: the given path, QWEN_BIN, the one of a {@link Provider}, or `qwen` in PATH, in this order.
     *
     * @param given the path; null if none is given
     * @return the program
     * @throws QwenException.BinaryNotFound if there is none
     */
    public static Path find(@Nullable Path given) {
        return find(given, System.getenv());
    }

    static Path find(@Nullable Path given, Map<String, String> environment) {
        if (given != null) {
            return require("binaryPath", given);
        }
        String variable = environment.getOrDefault("QWEN_BIN", "");
        if (!variable.isEmpty()) {
            return require("QWEN_BIN", Path.of(variable));
        }
        Path provided = extract(environment);
        if (provided != null) {
            return provided;
        }
        String path = environment.getOrDefault("PATH", "");
        for (String folder : path.split(File.pathSeparator, -1)) {
            Path program = Path.of(folder).resolve("qwen");
            if (!folder.isEmpty() && isProgram(program)) {
                return program.toAbsolutePath();
            }
        }
        throw new QwenException.BinaryNotFound("There is no qwen program: searched binaryPath (not set), QWEN_BIN (not set), "
                + "qwen-agent-sdk-runtime (none for " + platform() + "), PATH (" + path
                + "). Install qwen, put it on PATH, or name it with QWEN_BIN or binaryPath.", null);
    }

    /** A path that was given is meant: another program would be a surprise. */
    private static Path require(String source, Path path) {
        if (!isProgram(path)) {
            String problem = Files.exists(path) ? "is not a program" : "does not exist";
            throw new QwenException.BinaryNotFound("There is no qwen program: " + source + " is " + path + ", which " + problem
                    + ". Correct it or unset it.", null);
        }
        return path.toAbsolutePath();
    }

    private static boolean isProgram(Path path) {
        return Files.isRegularFile(path) && Files.isExecutable(path);
    }

    static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT).replaceAll("[^a-z].*", "");
        String machine = System.getProperty("os.arch");
        return system + "-" + (machine.equals("amd64") ? "x86_64" : machine);
    }

    /** Writes the program of a provider to the user's cache, once for each version; null if there is none. */
    private static @Nullable Path extract(Map<String, String> environment) {
        for (Provider provider : ServiceLoader.load(Provider.class, Binary.class.getClassLoader())) {
            try (InputStream program = provider.open(platform())) {
                if (program != null) {
                    return write(program.readAllBytes(), environment);
                }
            } catch (IOException e) {
                throw new QwenException.BinaryNotFound("The qwen program of " + provider.getClass().getName() + " cannot be used: "
                        + e.getMessage(), e);
            }
        }
        return null;
    }

    private static Path write(byte[] program, Map<String, String> environment) throws IOException {
        String cache = environment.getOrDefault("XDG_CACHE_HOME", "");
        Path base = cache.isEmpty() ? Path.of(System.getProperty("user.home"), ".cache") : Path.of(cache);
        Path folder = base.resolve("qwen-agent-sdk-java").resolve(digest(program));
        Path target = folder.resolve("qwen");
        if (isProgram(target)) {
            return target;
        }
        Files.createDirectories(folder, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        // Other processes may extract at the same moment: each writes its own file, and the rename is atomic.
        Path own = Files.createTempFile(folder, "qwen-", "", PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        Files.write(own, program);
        return Files.move(own, target, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    private static String digest(byte[] program) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(program), 0, 16);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
