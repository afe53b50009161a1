package io.github.qwenagent.suite;

import static io.github.qwenagent.suite.Place.call;
import static io.github.qwenagent.suite.Place.gate;
import static io.github.qwenagent.suite.Place.say;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.Attachment;
import io.github.qwenagent.Json;
import io.github.qwenagent.Message;
import io.github.qwenagent.PermissionMode;
import io.github.qwenagent.Pool;
import io.github.qwenagent.QwenException;
import io.github.qwenagent.Result;
import io.github.qwenagent.Session;
import io.github.qwenagent.SessionOptions;
import io.github.qwenagent.SessionStore;
import io.github.qwenagent.SettingSource;
import io.github.qwenagent.SettingsProfile;
import io.github.qwenagent.Timeouts;
import io.github.qwenagent.TurnOptions;
import io.github.qwenagent.Wire;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class SessionsTest extends SuiteTest {
    @Test
    void aSessionContinuesInANewWorkerWithItsHistory() {
        Place place = place(say("Hello Ada."), say("Your name is Ada."));
        try (Session session = place.manager().createSession(SessionOptions.builder().id("chosen-id").build())) {
            assertEquals("chosen-id", session.id());
            session.run("My name is Ada.");
        }
        place.manager().resumeSession("chosen-id").run("What is my name?");
        assertTrue(place.history().contains("Hello Ada."));
    }

    @Test
    void anUnknownIdIsAnErrorAndNotAnEmptySession() {
        AgentManager manager = place().manager();
        for (String id : List.of("no-such-session", "", "../escape", "a b")) {
            assertThrows(QwenException.SessionNotFound.class, () -> manager.resumeSession(id));
            assertThrows(QwenException.SessionNotFound.class, () -> manager.forkSession(id));
        }
    }

    @Test
    void anIdThatIsOpenIsAnErrorAndLeavesTheOpenSessionAsItIs() {
        AgentManager manager = place(say("One."), say("Two.")).manager();
        SessionOptions taken = SessionOptions.builder().id("taken").build();
        Session session = manager.createSession(taken);
        session.run("First.");
        assertThrows(IllegalStateException.class, () -> manager.createSession(taken));
        assertThrows(IllegalStateException.class, () -> manager.resumeSession("taken"));
        assertEquals("Two.", session.run("Second.").text());
    }

    @Test
    void aForkHasTheHistoryItsOwnIdAndLeavesTheOriginalAsItIs() {
        Place place = place(say("Hello Ada."), say("Second."), say("In the fork."), say("In the early fork."), say("In the original."));
        AgentManager manager = place.manager();
        Session session = manager.createSession();
        session.run("My name is Ada.", TurnOptions.builder().promptId("first").build());
        session.run("A second prompt.", TurnOptions.builder().promptId("second").build());
        Session fork = session.fork();
        assertNotEquals(session.id(), fork.id());
        fork.run("Only in the fork.");
        assertTrue(place.history().contains("Hello Ada.") && place.history().contains("A second prompt."));
        Session early = manager.forkSession(session.id(), SessionOptions.builder().at("first").build());
        early.run("Only in the early fork.");
        assertFalse(place.history().contains("Only in the fork.") || place.history().contains("Second."));
        session.run("Back in the original.");
        assertFalse(place.history().contains("Only in"));
        assertTrue(place.history().contains("Second."));
        assertThrows(IllegalArgumentException.class, () -> manager.resumeSession(session.id(), SessionOptions.builder().at("first").build()));
        assertThrows(QwenException.RequestRefused.class, () -> session.fork(SessionOptions.builder().at("nowhere").build()));
    }

    @Test
    void rewindPutsFilesBackToWhereTheyWereBeforeAPrompt() {
        Place place = place(say(call("write_file", Map.of("file_path", "notes.txt", "content", "changed"))), say("done"));
        Session session = place.session(place.options().permissionMode(PermissionMode.AUTO_EDIT));
        String prompt = session.run("Write notes.txt.").meta().promptId();
        assertEquals(1, session.previewRewind(prompt).size());
        assertTrue(place.exists("notes.txt"));
        assertEquals(1, session.rewind(prompt).size());
        assertFalse(place.exists("notes.txt"));
    }

    private static List<Path> temporary() {
        try (var files = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
            return files.filter(file -> file.getFileName().toString().startsWith("qwen-sdk-")).toList();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void aProfileTakesThePlaceOfSettingsFilesAndLeavesNothingBehind() {
        // Hosts that other tests killed may have left files.
        List<Path> before = temporary();
        Place place = looping(say("hi"));
        AgentManager manager = place.manager(place.options().pool(Pool.defaults().withQueueTimeout(Duration.ofSeconds(20))));
        SettingsProfile profile = SettingsProfile.of(Map.of("model.name", "from-the-profile"));
        manager.createSession(SessionOptions.builder().settingsProfile(profile).build()).run("Hello.");
        Session plain = manager.createSession(SessionOptions.builder().model("from-the-option").settings(Map.of("model", Map.of("maxRetries", 0))).build());
        plain.run("Hello.");
        assertEquals("from-the-profile", Place.text(place.requests().get(0), "model"));
        assertEquals("from-the-option", Place.text(place.requests().get(1), "model"));
        manager.close();
        assertEquals(List.of(), temporary().stream().filter(file -> !before.contains(file)).toList());
        assertEquals(Map.of("model.name", "from-the-profile"), profile.overrides());
    }

    /** A store in memory. */
    private static final class MemoryStore implements SessionStore {
        private final Map<String, ByteArrayOutputStream> sessions = new ConcurrentHashMap<>();
        private volatile IOException failure;

        @Override
        public byte[] load(String sessionId) {
            ByteArrayOutputStream text = sessions.get(sessionId);
            return text == null ? null : text.toByteArray();
        }

        @Override
        public void append(String sessionId, byte[] lines) throws IOException {
            if (failure != null) {
                throw failure;
            }
            sessions.computeIfAbsent(sessionId, id -> new ByteArrayOutputStream()).write(lines);
        }

        String text(String sessionId) {
            return sessions.containsKey(sessionId) ? sessions.get(sessionId).toString(StandardCharsets.UTF_8) : "";
        }
    }

    @Test
    void aStoreOfTheHostGetsEveryTurnAndBringsASessionBack() throws Exception {
        Place place = place(say("Hello Ada."), say("Your name is Ada."), say("third"));
        MemoryStore store = new MemoryStore();
        Session session = place.session(place.options().sessionStore(store));
        for (Message message : session.stream("My name is Ada.")) {
            if (message instanceof Result) {
                assertTrue(store.text(session.id()).contains("Hello Ada."), "the store has the turn before its result is delivered");
            }
        }
        session.close();
        // Another machine: nothing is on disk.
        try (var files = Files.walk(place.home.resolve(".qwen/sessions"))) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
        Session resumed = place.manager(place.options().sessionStore(store)).resumeSession(session.id());
        resumed.run("What is my name?");
        assertTrue(place.history().contains("Hello Ada."));
        assertTrue(store.text(session.id()).contains("Your name is Ada."));
        store.failure = new IOException("disk full");
        QwenException.StoreFailed failed = assertThrows(QwenException.StoreFailed.class, () -> resumed.run("Third."));
        assertTrue(failed.getMessage().contains("disk full"));
        assertEquals("third", resumed.lastResult().text());
        assertThrows(QwenException.StoreFailed.class, resumed::close);
    }

    @Test
    void aPoolOf4WorkersServes20Sessions() throws Exception {
        Place place = looping(say("served"));
        assertTrue(runConcurrently(place.manager(place.options().pool(Pool.ofMax(4))), 20) <= 4);
    }

    @Test
    void oneHundredSessionsRunConcurrently() throws Exception {
        Place place = looping(say("served"));
        Pool pool = Pool.ofMax(16).withMaxQueue(200).withQueueTimeout(Place.PATIENCE).withIdleTimeout(Place.PATIENCE);
        runConcurrently(place.manager(place.options().pool(pool)), 100);
    }

    /** Runs two turns in each of many sessions at once, and returns the most workers that it saw. */
    private static int runConcurrently(AgentManager manager, int count) throws InterruptedException {
        AtomicInteger most = new AtomicInteger();
        List<Throwable> failures = new CopyOnWriteArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            String id = "session-" + i;
            Thread thread = new Thread(() -> {
                try (Session session = manager.createSession(SessionOptions.builder().id(id).build())) {
                    for (int turn = 0; turn < 2; turn++) {
                        Result result = session.run("Serve.");
                        assertEquals("served", result.text());
                        assertEquals(id, result.meta().sessionId());
                        most.accumulateAndGet(Processes.children(manager.pid()).size(), Math::max);
                    }
                } catch (RuntimeException | AssertionError e) {
                    failures.add(e);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(List.of(), failures);
        return most.get();
    }

    @Test
    void attachDeliversNumberedMessagesAgainAndFollows() {
        Place place = place(say("one ", "two ", "three"), say("four"), say("five"));
        AgentManager manager = place.manager(place.options().numbered());
        Session session = manager.createSession(SessionOptions.builder().id("numbered").build());
        List<Message> first = collect(session.stream("Count."));
        first.forEach(message -> assertTrue(message.meta().seq() > 0, message.toString()));
        List<Message> again = new ArrayList<>();
        CompletableFuture<Result> next = null;
        try (Attachment attachment = session.attach(0)) {
            for (Message message : attachment) {
                again.add(message);
                if (message instanceof Result result && result.text().equals("one two three")) {
                    next = session.runAsync("Go on.");
                } else if (message instanceof Result) {
                    break;
                }
            }
        }
        assertEquals("four", next.join().text());
        for (int i = 0; i < first.size(); i++) {
            assertEquals(first.get(i).getClass(), again.get(i).getClass());
            assertEquals(first.get(i).meta().seq(), again.get(i).meta().seq());
        }
        assertEquals("four", result(again).text());
        long seen = result(again).meta().seq();
        manager.close();
        // A host that comes back.
        Session resumed = place.manager(place.options().numbered()).resumeSession("numbered");
        try (Attachment attachment = resumed.attach(seen - 1)) {
            Result end = assertInstanceOf(Result.class, attachment.iterator().next());
            assertEquals(seen, end.meta().seq());
        }
        QwenException.RequestRefused refused = assertThrows(QwenException.RequestRefused.class, () -> resumed.attach(seen + 1000));
        assertEquals("after_in_future", refused.code());
    }

    @Test
    void optionsOfATurnReachTheModel() {
        Place place = place(say("one"), say(call("structured_output", Map.of("ok", true))));
        Path file = place.file("notes.txt", "remember the milk");
        Session session = place.session();
        session.run("Look.", TurnOptions.builder().model("turn-model").temperature(0.25).maxTokens(77).effort("low").toolOverrides("read_file")
                .image(new byte[] {(byte) 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, "image/png").file(file).build());
        String body = place.control("GET", "requests");
        for (String wanted : List.of("\"model\":\"turn-model\"", "\"temperature\":0.25", "77", "iVBORw0KGgo", "remember the milk")) {
            assertTrue(body.contains(wanted), wanted);
        }
        assertEquals(1, ((List<?>) place.requests().get(0).get("tools").value()).size());
        Map<String, Object> schema = Map.of("type", "object", "properties", Map.of("ok", Map.of("type", "boolean")), "required", List.of("ok"));
        Result result = session.run("As data.", TurnOptions.builder().outputSchema(schema).build());
        assertEquals(Json.parse("{\"ok\": true}"), result.output());
    }

    @Test
    void messagesOfEveryKindArrive() {
        Place place = place(say(Map.of("thought", "I look."), call("run_shell_command", Map.of("command", "echo shown", "description", "show"))),
                Map.of("steps", List.of(Map.of("status", 503, "headers", Map.of("retry-after", "0"), "body", "busy"))), say("done"));
        List<Message> messages = collect(place.session(place.options().permissionMode(PermissionMode.YOLO)).stream("Show."));
        StringBuilder shown = new StringBuilder();
        only(messages, Message.Terminal.class).forEach(output -> shown.append(output.text()));
        assertTrue(shown.toString().contains("shown"), shown.toString());
        assertFalse(only(messages, Message.Thought.class).isEmpty() || only(messages, Message.ToolCallDelta.class).isEmpty());
        Message.ToolStatus status = last(only(messages, Message.ToolStatus.class));
        assertEquals("success", status.status());
        assertNotNull(status.display());
        List<String> events = only(messages, Message.SessionEvent.class).stream().map(Message.SessionEvent::event).toList();
        assertTrue(events.contains("Retry") && events.contains("Finished"), events.toString());
        assertTrue(only(messages, Message.Notice.class).isEmpty() && only(messages, Message.Unknown.class).isEmpty());
        assertEquals("run_shell_command", only(messages, Message.Assistant.class).get(0).toolCalls().get(0).name());
        Wire.ToolDisplayRecord line = Json.parse(status.meta().raw()).as(Wire.ToolDisplayRecord.class);
        assertEquals(status.toolCallId(), line.toolCallId());
    }

    @Test
    void settingsFilesCountOnlyIfTheyAreNamed() throws Exception {
        for (boolean isNamed : List.of(false, true)) {
            Place place = place();
            Files.createDirectories(place.home.resolve(".qwen"));
            Files.writeString(place.home.resolve(".qwen/settings.json"), "{\"permissions\":{\"deny\":[\"Bash(curl *)\"]}}");
            AgentOptions.Builder options = place.options();
            if (isNamed) {
                options.settingSources(SettingSource.USER, SettingSource.PROJECT, SettingSource.LOCAL);
            }
            AgentManager manager = place.manager(options);
            assertEquals(isNamed, manager.run("/permissions").meta().raw().contains("curl"));
            assertTrue(manager.program().startsWith("qwen-"), manager.program());
            assertNotNull(manager.status().get("workers") == null ? manager.status().value() : manager.status().get("workers"));
        }
    }

    @Test
    void instructionsAndFurtherOptionsReachTheWorker() {
        Place place = looping(say("fine"));
        Path other = place.folder.resolve("home");
        Session session = place.session(place.options().appendSystemPrompt("Speak like a pirate.").policyDescription("Deployments are refused.").coreTools("read_file").effort("low")
                .additionalDirectories(other).agent("react").unsetEnv("EDITOR").env("MARK", "1").extraArgs("--max-turns=9"));
        session.run("Hello.");
        assertTrue(String.join("", place.texts("system")).contains("Speak like a pirate."));
        assertTrue(place.control("GET", "requests").contains("Deployments are refused."));
        assertTrue(place.requests().get(0).get("tools").toString().contains("read_file"));
    }

    @Test
    void anOverloadedPoolIsAnErrorThatTellsWhenToTryAgain() throws Exception {
        Place place = looping(say("half", gate("held")));
        AgentManager manager = place.manager(place.options().pool(Pool.ofMax(1).withMaxQueue(1)));
        List<CompletableFuture<Result>> running = new ArrayList<>();
        CompletableFuture<Throwable> first = new CompletableFuture<>();
        for (int i = 0; i < 4; i++) {
            CompletableFuture<Result> each = manager.createSession().runAsync("Work.");
            each.whenComplete((result, failure) -> first.complete(failure));
            running.add(each);
        }
        QwenException.Overloaded refused = assertInstanceOf(QwenException.Overloaded.class, first.get());
        assertTrue(refused.retryAfter().compareTo(Duration.ZERO) > 0);
        assertFalse(refused.code().isEmpty());
        manager.close();
        for (CompletableFuture<Result> each : running) {
            assertThrows(ExecutionException.class, each::get);
        }
    }

    @Test
    void aRequestThatIsNotAnsweredIsATimeoutWithItsName() {
        Place place = place(say("half", gate("never")));
        AgentManager manager = place.manager(place.options().timeouts(Timeouts.defaults().withRequest(Duration.ofMillis(500))));
        Session session = manager.createSession();
        try (var turn = session.stream("Work.")) {
            for (Message message : turn) {
                if (!(message instanceof Message.Text)) {
                    continue;
                }
                List<Long> workers = Processes.children(manager.pid());
                Processes.signal("STOP", workers);
                QwenException.Timeout late = assertThrows(QwenException.Timeout.class, () -> session.setModel("x"));
                Processes.signal("CONT", workers);
                assertEquals("request", late.name());
                assertEquals(Duration.ofMillis(500), late.limit());
                break;
            }
        }
    }
}
