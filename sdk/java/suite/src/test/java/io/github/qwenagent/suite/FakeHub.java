package io.github.qwenagent.suite;

import io.github.qwenagent.Json;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

/** A program that acts as a hub, answers requests, and treats prompts according to its role. */
final class FakeHub {
    private static final PrintStream OUT = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, StandardCharsets.UTF_8);
    private static Path script;

    private FakeHub() {}

    /** Returns a program that runs this class. */
    static synchronized Path program() {
        try {
            if (script == null) {
                String java = ProcessHandle.current().info().command().orElseThrow();
                script = Files.createTempFile("fake-hub-", "", PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
                Files.writeString(script, "#!/bin/sh\nexec '" + java + "' -Xmx512m -XX:TieredStopAtLevel=1 -cp '" + System.getProperty("java.class.path")
                        + "' " + FakeHub.class.getName() + "\n");
                script.toFile().deleteOnExit();
            }
            return script;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void write(String line) {
        OUT.println(line);
        OUT.flush();
    }

    /** Acts as a hub. */
    public static void main(String[] arguments) throws Exception {
        String role = System.getenv("QWEN_FAKE_HUB");
        switch (role) {
            case "silent" -> Thread.sleep(3_600_000);
            case "version" -> write("{\"object\":\"chat.completion.chunk\",\"choices\":[],\"metadata\":{\"protocol_version\":\"7.2\"}}");
            case "fatal" -> {
                write("{\"error\":{\"message\":\"the settings are broken\",\"type\":\"invalid_request_error\"}}");
                System.exit(52);
            }
            default -> write("{\"object\":\"chat.completion.chunk\",\"choices\":[],\"system_fingerprint\":\"fake-1\",\"metadata\":{\"protocol_version\":\"1.3\"}}");
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Json request = Json.parse(line);
            if (Place.text(request, "type").equals("control_request")) {
                write("{\"type\":\"control_response\",\"request_id\":\"" + Place.text(request, "request_id")
                        + "\",\"response\":{\"subtype\":\"success\",\"result\":{}}}");
            } else if (request.get("input") != null) {
                answer(role, request);
            }
        }
    }

    private static void answer(String role, Json request) {
        String head = "\"session_id\":\"" + Place.text(request, "session_id") + "\",\"prompt_id\":\"" + Place.text(request, "prompt_id") + "\"";
        switch (role) {
            case "long" -> {
                piece(head, "before ");
                piece(head, "x".repeat(60_000_000));
            }
            case "strange" -> {
                piece(head, "a");
                write("this is not JSON");
                write("{\"type\":\"x-qwen-hologram\"," + head + ",\"depth\":3}");
                write("{\"type\":\"x-qwen-thought\"," + head + ",\"subject\":7,\"description\":[]}");
                write("{\"type\":\"x-qwen-thought\"," + head + ",\"subject\":\"s\",\"description\":\"d\",\"mood\":\"calm\"}");
                write("{\"object\":\"chat.completion.chunk\"," + head
                        + ",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\",\"extra\":\"c\"},\"finish_reason\":null}],\"more\":true}");
                write("[]");
                write("");
                piece(head, "d");
            }
            case "flood" -> {
                String flood = "complaint\n".repeat(10_000);
                for (int i = 0; i < 40; i++) {
                    System.err.print(flood);
                }
                piece(head, "after the flood");
            }
            case "die" -> {
                piece(head, "almost");
                System.err.print("noise\n".repeat(100_000) + "out of cheese\n");
                System.exit(3);
            }
            case "count" -> count(head, request);
            default -> { }
        }
        write("{\"object\":\"chat.completion.chunk\"," + head + ",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],"
                + "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1,\"total_tokens\":2},\"metadata\":{\"turn\":{\"status\":\"done\","
                + "\"duration_ms\":1,\"model_calls\":1,\"tool_calls\":0,\"permission_denials\":[],\"usage_by_model\":{}}}}");
    }

    /** Writes lines of an unknown type, one message less than the prompt asks for; the result is the last. */
    private static void count(String head, Json request) {
        String prompt = request.get("input").get("parts").toString().replaceAll("[^0-9]", "");
        for (long i = 1; i < Long.parseLong(prompt); i++) {
            write("{\"type\":\"x-new\"," + head + "}");
        }
    }

    private static void piece(String head, String text) {
        write("{\"object\":\"chat.completion.chunk\"," + head + ",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + text
                + "\"},\"finish_reason\":null}]}");
    }
}
