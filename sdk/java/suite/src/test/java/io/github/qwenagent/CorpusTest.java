package io.github.qwenagent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.qwenagent.internal.hub.Envelope;
import io.github.qwenagent.internal.hub.HubReceiver;
import io.github.qwenagent.internal.hub.TextLines;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.Test;

class CorpusTest {
    /** A turn of the manifest. */
    record Turn(@Named("prompt_id") String promptId, String status, String reply) {}

    private static Path corpus() {
        Path folder = Path.of("").toAbsolutePath();
        while (!Files.exists(folder.resolve("corpus/manifest.json"))) {
            folder = folder.getParent();
        }
        return folder.resolve("corpus");
    }

    private static List<String> lines(Path path) throws IOException {
        byte[] data = Files.readAllBytes(path);
        if (path.toString().endsWith(".gz")) {
            data = new GZIPInputStream(new ByteArrayInputStream(data)).readAllBytes();
        }
        String text = new String(data, StandardCharsets.UTF_8);
        return List.of(text.substring(0, text.length() - 1).split("\n", -1));
    }

    private static List<Message> read(TurnReader reader, String line) {
        byte[] bytes = line.getBytes(StandardCharsets.UTF_8);
        Envelope envelope = Envelope.read(bytes);
        return reader.read(new Message.Meta(envelope.sessionId(), envelope.promptId(), 0, bytes), envelope);
    }

    private static List<?> list(Json json, String name) {
        return (List<?>) json.get(name).value();
    }

    private static String text(Json json, String name) {
        return String.valueOf(json.get(name).value());
    }

    @Test
    void theCorpusReadsAsItsManifestSays() throws IOException {
        Json manifest = Json.parse(Files.readString(corpus().resolve("manifest.json")));
        int files = 0;
        for (Object each : list(manifest, "traces")) {
            Json trace = Json.of(each);
            List<Turn> expected = new ArrayList<>();
            list(trace, "turns").forEach(turn -> expected.add(Json.of(turn).as(Turn.class)));
            for (Object one : list(trace, "files")) {
                Json file = Json.of(one);
                if (text(file, "dialect").equals("qwen") && text(file, "format").startsWith("stream-")) {
                    files++;
                    checkFile(file, expected);
                }
            }
        }
        assertTrue(files >= 40, files + " files");
    }

    private static void checkFile(Json file, List<Turn> expected) throws IOException {
        String path = text(file, "path");
        List<String> lines = lines(corpus().resolve(path));
        assertEquals(file.get("lines").value(), (long) lines.size(), path);
        Map<String, TurnReader> readers = new HashMap<>();
        List<Turn> turns = new ArrayList<>();
        for (String line : lines) {
            String prompt = Envelope.read(line.getBytes(StandardCharsets.UTF_8)).promptId();
            for (Message message : read(readers.computeIfAbsent(prompt, id -> new TurnReader()), line)) {
                assertFalse(message instanceof Message.Unknown, line);
                if (message instanceof Result result && line.contains("\"turn\":")) {
                    turns.add(new Turn(prompt, result.status().toString(), result.text()));
                }
            }
        }
        assertEquals(expected, turns, path);
    }

    @Test
    void theExamplesOfTheSpecificationAreKnownLines() throws IOException {
        try (var paths = Files.list(corpus().resolve("spec-examples"))) {
            List<Path> examples = paths.filter(path -> path.getFileName().toString().startsWith("spec1-")).toList();
            assertTrue(examples.size() >= 10);
            for (Path path : examples) {
                String name = path.getFileName().toString();
                boolean isInput = (name.contains("request") || name.contains("input")) && !name.contains("control-request");
                List<String> lines = name.endsWith(".json") ? List.of(Files.readString(path)) : lines(path);
                for (String line : isInput ? List.<String>of() : lines) {
                    assertTrue(read(new TurnReader(), line).stream().noneMatch(Message.Unknown.class::isInstance), name + ": " + line);
                }
            }
        }
    }

    @Test
    void usageHasItsDetails() {
        String line = "{\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"total_tokens\":13,"
                + "\"prompt_tokens_details\":{\"cached_tokens\":5},\"completion_tokens_details\":{\"reasoning_tokens\":2},\"estimated\":true},"
                + "\"metadata\":{\"turn\":{\"status\":\"new-status\"}}}";
        Result result = (Result) read(new TurnReader(), line).get(0);
        assertEquals(new Usage(9, 4, 13, 5, 2, 0, null, true), result.usage());
        assertEquals(5, result.usage().cachedTokens());
        assertEquals(2, result.usage().reasoningTokens());
        assertTrue(result.usage().isEstimated());
        assertEquals(Status.OTHER, result.status());
    }

    @Test
    void readingNeverFailsWhateverTheLineIs() {
        for (String line : List.of("", "{", "null", "[]", "3", "\"x\"", "{}", "{\"type\":7}", "{\"type\":\"x-new\",\"a\":1}", "{\"choices\":{}}",
                "{\"choices\":[null]}", "{\"object\":\"chat.completion\"}", "{\"object\":\"chat.completion\",\"choices\":[{}]}",
                "{\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"tool_calls\":[{}]}}]}",
                "{\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":99999999999999}]}}]}",
                "{\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1}]}}]}",
                "{\"type\":\"control_response\"}", "{\"error\":\"text\"}", "\0", "[".repeat(20_000), "{\"a\":" + "9".repeat(100_000) + "}")) {
            read(new TurnReader(), line);
        }
    }

    @Test
    void anyValueInAnyFieldIsReadWithoutAnException() throws IOException {
        List<Object> values = new ArrayList<>(List.of(true, -1, 1.5, "text", List.of(), List.of(Map.of()), Map.of(), "1e400"));
        values.add(null);
        for (String path : List.of("one-tool/qwen.jsonl", "one-tool/qwen.stream-chunk-json.jsonl", "side-lines/qwen.jsonl", "denied-tool/qwen.jsonl")) {
            for (String line : lines(corpus().resolve(path))) {
                Map<?, ?> fields = (Map<?, ?>) Json.parse(line).value();
                for (Object name : fields.keySet()) {
                    for (Object value : values) {
                        Map<Object, Object> changed = new LinkedHashMap<>(fields);
                        changed.put(name, value);
                        read(new TurnReader(), Json.of(changed).toString());
                    }
                }
            }
        }
    }

    /** Keeps texts. */
    private static final class Texts implements HubReceiver {
        private final List<String> texts = new ArrayList<>();

        @Override
        public void text(String promptId, String text, long seq, byte[] line) {
            texts.add(text);
        }

        @Override
        public void line(Envelope envelope, byte[] line) {
            texts.add("a whole line");
        }

        @Override
        public void lost(Supplier<QwenException> cause) {
            texts.add("lost");
        }
    }

    @Test
    void piecesAreReadAlikeWhetherOrNotTheirLineIsDecodedWhole() {
        for (String head : List.of("{", "{\"seq\":12,")) {
            for (String text : List.of("plain", "with \"quotes\" and \\ and \n and \0", "完了 🎉", "\"delta\":{\"content\":\"", "\"},\"finish_reason\":null}]}",
                    "\\\"", " ", "\\", "x\\\"")) {
                String line = head + "\"object\":\"chat.completion.chunk\",\"session_id\":\"s\",\"prompt_id\":\"p\",\"choices\":[{\"index\":0,"
                        + "\"delta\":{\"content\":" + Json.of(text) + "},\"finish_reason\":null}]}";
                assertEquals(text, ((Message.Text) read(new TurnReader(), line).get(0)).text());
                Texts receiver = new Texts();
                TextLines lines = new TextLines();
                byte[] bytes = line.getBytes(StandardCharsets.UTF_8);
                lines.learn(bytes, "p", receiver);
                assertTrue(lines.deliver(bytes), line);
                assertEquals(List.of(text), receiver.texts);
            }
        }
    }

    @Test
    void theBinaryIsLookedUpInTheOptionThenQwenBinThenPath() throws IOException {
        Path folder = Files.createTempDirectory("lookup-");
        List<Path> programs = new ArrayList<>();
        for (String name : List.of("option", "variable", "path")) {
            Path program = Files.createDirectories(folder.resolve(name)).resolve("qwen");
            Files.writeString(program, "#!/bin/sh\n");
            assertTrue(program.toFile().setExecutable(true));
            programs.add(program);
        }
        String path = programs.get(2).getParent().toString();
        Map<String, String> all = Map.of("QWEN_BIN", programs.get(1).toString(), "PATH", "/nowhere:" + path);
        assertEquals(programs.get(0), Binary.find(programs.get(0), all));
        assertEquals(programs.get(1), Binary.find(null, all));
        assertEquals(programs.get(2), Binary.find(null, Map.of("PATH", path)));
        QwenException.BinaryNotFound missing = assertThrows(QwenException.BinaryNotFound.class,
                () -> Binary.find(null, Map.of("PATH", "/nowhere")));
        for (String wanted : List.of("binaryPath", "QWEN_BIN", "qwen-agent-sdk-runtime", "PATH (/nowhere)", "Install qwen")) {
            assertTrue(missing.getMessage().contains(wanted), missing.getMessage());
        }
    }
}
