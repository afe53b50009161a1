package io.github.qwenagent;

import io.github.qwenagent.internal.json.Fields;
import io.github.qwenagent.internal.json.JsonWriter;
import io.github.qwenagent.internal.threads.Interruptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Turns options into the arguments of the hub and the fields of the request that opens a session. */
final class Launch {
    private Launch() {}

    /** The arguments of a hub, and a configuration file for what has no flag; null if there is none. */
    record HubArguments(List<String> arguments, @Nullable Path folder) {}

    /** The fields of the request that opens a session. Its settings file is in the folder; null if there is none. */
    record OpenFields(Map<String, Object> fields, @Nullable Path folder) {}

    static HubArguments hubArguments(Pool pool) {
        // Spares have no options of a session and fit none of ours, so there are none unless they are asked for.
        List<String> arguments = new ArrayList<>(List.of("hub", "--dialect", "qwen", "--output-format", "stream-chunk-json",
                "--log-format", "json", "--min-workers", String.valueOf(pool.minWorkers())));
        if (pool.maxWorkers() > 0) {
            arguments.addAll(List.of("--max-workers", String.valueOf(pool.maxWorkers())));
        }
        if (pool.maxSessionsPerWorker() > 0) {
            arguments.addAll(List.of("--max-sessions-per-worker", String.valueOf(pool.maxSessionsPerWorker())));
        }
        Map<String, Object> further = new LinkedHashMap<>();
        putSeconds(further, "idle_timeout", pool.idleTimeout());
        putSeconds(further, "health_check_interval", pool.healthCheckInterval());
        putSeconds(further, "heartbeat_interval", pool.heartbeatInterval());
        putSeconds(further, "heartbeat_timeout", pool.heartbeatTimeout());
        putSeconds(further, "queue_timeout", pool.queueTimeout());
        if (pool.maxQueue() > 0) {
            further.put("max_queue", pool.maxQueue());
            further.put("max_queue_per_tenant", pool.maxQueue());
        }
        if (further.isEmpty()) {
            return new HubArguments(arguments, null);
        }
        Path file = writePrivate("hub.json", Map.of("worker_pool", further));
        arguments.addAll(List.of("--config", file.toString()));
        return new HubArguments(arguments, file.getParent());
    }

    private static void putSeconds(Map<String, Object> target, String name, @Nullable Duration time) {
        if (time != null) {
            target.put(name, seconds(time));
        }
    }

    private static double seconds(Duration time) {
        return time.toMillis() / 1000.0;
    }

    /** Writes a JSON file that only this user can read, into a new folder below the temporary directory. */
    private static Path writePrivate(String name, Object value) {
        try {
            // The JDK creates the folder and, below it, everything else out of reach of other users.
            Path folder = Files.createTempDirectory("qwen-sdk-");
            return Files.write(folder.resolve(name), JsonWriter.write(value).getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException("Cannot write a temporary file: " + e.getMessage(), e);
        }
    }

    /** Removes a folder of {@link #writePrivate}; nothing happens without one. */
    static void removeFolder(@Nullable Path folder) {
        if (folder == null) {
            return;
        }
        try (var files = Files.list(folder)) {
            for (Path file : files.toList()) {
                Files.deleteIfExists(file);
            }
            Files.deleteIfExists(folder);
        } catch (IOException e) {
            // It is below the temporary directory, and no other user can read it.
            System.getLogger("io.github.qwenagent").log(System.Logger.Level.DEBUG, "temporary files remain", e);
        }
    }

    static OpenFields openFields(Option.Values options, @Nullable String forkFrom) {
        Path directory = options.get(Option.CWD, Path.of("")).toAbsolutePath();
        List<String> arguments = new ArrayList<>();
        Path folder = addArguments(arguments, options);
        Map<String, @Nullable Object> env = new LinkedHashMap<>();
        options.get(Option.UNSET_ENV, List.of()).forEach(name -> env.put(name, null));
        env.putAll(options.get(Option.ENV, Map.of()));
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("cwd", directory.toString());
        fields.put("args", arguments);
        fields.put("env", env);
        SettingsProfile profile = options.get(Option.SETTINGS_PROFILE);
        if (profile != null) {
            fields.put("settings_profile", profile.wire());
        }
        if (forkFrom != null) {
            fields.put("fork_from", forkFrom);
        }
        String tenant = options.get(Option.TENANT);
        if (tenant != null) {
            fields.put("tenant", tenant);
        }
        if (options.get(Option.NUMBERED, false)) {
            fields.put("sequence", true);
        }
        OnCrash policy = options.get(Option.ON_CRASH);
        if (policy != null) {
            fields.put("on_crash", policy.toString());
        }
        return new OpenFields(fields, folder);
    }

    /** Adds the worker's flags. Prompts, instructions and values of settings are never among them. */
    private static @Nullable Path addArguments(List<String> arguments, Option.Values options) {
        if (options.get(Option.SETTINGS_PROFILE) == null) {
            List<String> sources = options.get(Option.SETTING_SOURCES, List.of()).stream().map(SettingSource::toString).toList();
            arguments.add("--setting-sources=" + String.join(",", sources));
        }
        add(arguments, "--model", options.get(Option.MODEL));
        add(arguments, "--approval-mode", options.get(Option.PERMISSION_MODE));
        add(arguments, "--agent", options.get(Option.AGENT));
        add(arguments, "--effort", options.get(Option.EFFORT));
        add(arguments, "--core-tools", join(options.get(Option.CORE_TOOLS)));
        add(arguments, "--include-directories", join(options.get(Option.ADDITIONAL_DIRECTORIES)));
        Limits limits = options.get(Option.LIMITS, Limits.none());
        addNumber(arguments, "--max-turns", limits.maxTurns());
        addNumber(arguments, "--max-session-turns", limits.maxSessionTurns());
        addNumber(arguments, "--max-tool-calls", limits.maxToolCalls());
        addNumber(arguments, "--max-tokens-total", limits.maxTokensTotal());
        if (limits.maxWallTime() != null) {
            add(arguments, "--max-wall-time", seconds(limits.maxWallTime()));
        }
        if (limits.maxBudgetUsd() > 0) {
            add(arguments, "--max-budget-usd", limits.maxBudgetUsd());
        }
        Path folder = addSettings(arguments, options);
        arguments.addAll(options.get(Option.EXTRA_ARGS, List.of()));
        return folder;
    }

    private static void add(List<String> arguments, String flag, @Nullable Object value) {
        if (value != null) {
            arguments.add(flag + "=" + value);
        }
    }

    private static void addNumber(List<String> arguments, String flag, long value) {
        if (value > 0) {
            add(arguments, flag, value);
        }
    }

    private static @Nullable String join(@Nullable List<?> items) {
        return items == null ? null : String.join(",", items.stream().map(String::valueOf).toList());
    }

    /** Adds the session's settings and rules: values in a file, rules alone as a flag. */
    private static @Nullable Path addSettings(List<String> arguments, Option.Values options) {
        Map<String, ?> values = options.get(Option.SETTINGS, Map.of());
        Map<String, Object> settings = new LinkedHashMap<>(values);
        Map<String, Object> permissions = new LinkedHashMap<>();
        if (values.get("permissions") instanceof Map<?, ?> given) {
            given.forEach((name, rules) -> permissions.put(String.valueOf(name), rules));
        }
        addRules(permissions, "allow", options.get(Option.ALLOWED_TOOLS));
        addRules(permissions, "ask", options.get(Option.ASK_TOOLS));
        addRules(permissions, "deny", options.get(Option.DISALLOWED_TOOLS));
        if (!permissions.isEmpty()) {
            settings.put("permissions", permissions);
        }
        if (!values.isEmpty()) {
            Path file = writePrivate("settings.json", settings);
            add(arguments, "--settings", file);
            return file.getParent();
        }
        if (!settings.isEmpty()) {
            add(arguments, "--settings", JsonWriter.write(settings));
        }
        return null;
    }

    private static void addRules(Map<String, Object> permissions, String name, @Nullable List<String> rules) {
        if (rules == null) {
            return;
        }
        List<Object> all = new ArrayList<>(permissions.get(name) instanceof List<?> given ? given : List.of());
        all.addAll(rules);
        permissions.put(name, all);
    }

    /** Copies a session up to a point into a new one, which the hub then opens. */
    static void forkAt(Path program, String source, String point, String target, Option.Values options) {
        List<String> command = List.of(program.toString(), "sessions", "fork", source, "--at", point, "--session-id", target);
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(options.get(Option.ENV, Map.of()));
        builder.directory(options.get(Option.CWD, Path.of("")).toAbsolutePath().toFile());
        Process process;
        try {
            process = builder.start();
            process.getOutputStream().close();
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
            if (process.waitFor() != 0) {
                throw new QwenException.RequestRefused("fork", "fork_failed", output, false);
            }
        } catch (IOException e) {
            throw new QwenException.RequestRefused("fork", "fork_failed", String.valueOf(e.getMessage()), false);
        } catch (InterruptedException e) {
            throw Interruptions.restore("The fork was interrupted.");
        }
    }

    /** Reads how a worker ended from the terminal record of its turn. */
    static QwenException workerExited(Result result, Result.Failure error, @Nullable Result previous) {
        Fields line = Fields.parse(result.meta().raw().getBytes(StandardCharsets.UTF_8));
        Fields metadata = line == null ? null : line.optional("metadata");
        Fields told = metadata == null ? null : metadata.optional("error");
        Fields worker = told == null ? null : told.optional("worker");
        Fields known = worker == null ? Fields.empty() : worker;
        int code = known.value("exit_code") instanceof Long number ? number.intValue() : -1;
        return new QwenException.WorkerExited("The worker has ended: " + error.message(), false, code, (int) known.count("signal"),
                known.text("stderr"), previous);
    }
}
