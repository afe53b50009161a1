package io.github.qwenagent.suite;

import static io.github.qwenagent.suite.Place.gate;
import static io.github.qwenagent.suite.Place.say;
import static io.github.qwenagent.suite.Place.sayAbout;
import static io.github.qwenagent.suite.Place.touch;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.Decision;
import io.github.qwenagent.Json;
import io.github.qwenagent.Message;
import io.github.qwenagent.OnCrash;
import io.github.qwenagent.PermissionMode;
import io.github.qwenagent.Pool;
import io.github.qwenagent.QwenException;
import io.github.qwenagent.Result;
import io.github.qwenagent.Session;
import io.github.qwenagent.Status;
import io.github.qwenagent.Timeouts;
import io.github.qwenagent.Turn;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;

class FailuresTest extends SuiteTest {
    @Test
    void aWorkerKilledInATurnIsAnErrorThatTellsHowItEnded() {
        Place place = place(say("fine"), say("half", gate("never")), say("Back again."));
        AgentManager manager = place.manager();
        Session session = manager.createSession();
        session.run("First.");
        List<Message> messages = new ArrayList<>();
        QwenException.WorkerExited lost = assertThrows(QwenException.WorkerExited.class, () -> {
            try (Turn turn = session.stream("Second.")) {
                for (Message message : turn) {
                    messages.add(message);
                    if (message instanceof Message.Text) {
                        Processes.signal("KILL", Processes.children(manager.pid()));
                    }
                }
            }
        });
        assertFalse(lost.isHub());
        assertEquals(9, lost.signal());
        assertEquals(-1, lost.exitCode());
        assertEquals("fine", lost.lastResult().orElseThrow().text());
        assertEquals(Status.INTERRUPTED, result(messages).status());
        assertEquals("half", result(messages).text());
        assertEquals("Back again.", session.run("Third.").text());
    }

    /** Runs a turn under a policy and kills its worker once: after the tool, or in the first text. */
    private Session crash(Place place, OnCrash policy, String killedAt, List<Message> messages) {
        AgentManager manager = place.manager(place.options().permissionMode(PermissionMode.YOLO).onCrash(policy));
        Session session = manager.createSession();
        boolean isKilled = false;
        try (Turn turn = session.stream("Work.")) {
            for (Message message : turn) {
                messages.add(message);
                if (message instanceof Message.Text piece && piece.text().equals(killedAt) && !isKilled) {
                    isKilled = true;
                    Processes.signal("KILL", Processes.children(manager.pid()));
                    place.open("after");
                }
            }
        }
        assertTrue(isKilled);
        return session;
    }

    @Test
    void aTurnWhoseWorkerDiedIsResumedAndFinishedEffectsAreNotRepeated() {
        Place place = place(say(touch("made")), say("rest", gate("after")), say("again"));
        List<Message> messages = new ArrayList<>();
        crash(place, OnCrash.RESUME, "rest", messages);
        assertTrue(result(messages).isDone());
        assertEquals("again", result(messages).text());
        assertTrue(result(messages).toolCalls().stream().filter(call -> call.name().equals("run_shell_command")).count() <= 1);
        assertTrue(place.exists("made"));
    }

    @Test
    void aTurnWhoseWorkerDiedBeforeAnyToolIsRetriedAsConfigured() {
        Place place = place(say("half", gate("never")), say("rest"), say("again"));
        List<Message> messages = new ArrayList<>();
        crash(place, OnCrash.RETRY, "half", messages);
        assertTrue(result(messages).isDone());
        assertEquals("rest", result(messages).text());
    }

    @Test
    void aTurnWhoseWorkerDiedAfterAToolIsNotRetried() {
        Place place = place(say(touch("made")), say("rest", gate("after")), say("again"));
        List<Message> messages = new ArrayList<>();
        QwenException.WorkerExited lost = assertThrows(QwenException.WorkerExited.class, () -> crash(place, OnCrash.RETRY, "rest", messages));
        assertEquals(9, lost.signal());
        assertEquals(Status.INTERRUPTED, result(messages).status());
    }

    @Test
    void aTurnWhoseWorkerDiedContinuesInAForkAndTheOriginalStays() throws IOException {
        Place place = place(say("half", gate("never")), say("rest", gate("after")), say("again"));
        List<Message> messages = new ArrayList<>();
        Session session = crash(place, OnCrash.FORK, "half", messages);
        assertEquals("rest", result(messages).text());
        assertEquals(session.id(), result(messages).meta().sessionId());
        String original = messages.get(0).meta().sessionId();
        assertNotEquals(original, session.id());
        assertEquals("again", session.run("And now?").text());
        String log = Files.readString(place.home.resolve(".qwen/sessions/" + original + ".jsonl"));
        assertFalse(log.contains("And now?"));
    }

    @Test
    void everySessionOfAKilledHubEndsWithAnError() throws Exception {
        Place place = looping(say("half", gate("never")));
        AgentManager manager = place.manager();
        List<CompletableFuture<Throwable>> failures = new ArrayList<>();
        CountDownLatch running = new CountDownLatch(3);
        for (int i = 0; i < 3; i++) {
            Session session = manager.createSession();
            CompletableFuture<Throwable> failure = new CompletableFuture<>();
            failures.add(failure);
            new Thread(() -> {
                try (Turn turn = session.stream("Work.")) {
                    for (Message message : turn) {
                        if (message instanceof Message.Text) {
                            running.countDown();
                        }
                    }
                    failure.complete(null);
                } catch (RuntimeException e) {
                    failure.complete(e);
                }
            }).start();
        }
        running.await();
        Processes.signal("KILL", List.of(manager.pid()));
        for (CompletableFuture<Throwable> failure : failures) {
            QwenException.WorkerExited lost = assertInstanceOf(QwenException.WorkerExited.class, failure.get());
            assertTrue(lost.isHub());
            assertEquals(9, lost.signal());
        }
        assertThrows(QwenException.WorkerExited.class, manager::createSession);
        assertThrows(QwenException.WorkerExited.class, manager::status);
    }

    @Test
    void aWorkerThatStopsAnsweringIsEndedAndTreatedAsCrashed() {
        Place place = place(say("half", gate("never")), say("Back again."));
        AgentManager manager = place.manager(place.options()
                .pool(Pool.defaults().withHeartbeatInterval(Duration.ofMillis(200)).withHeartbeatTimeout(Duration.ofSeconds(1))));
        Session session = manager.createSession();
        assertThrows(QwenException.WorkerExited.class, () -> {
            try (Turn turn = session.stream("Work.")) {
                for (Message message : turn) {
                    if (message instanceof Message.Text) {
                        Processes.signal("STOP", Processes.children(manager.pid()));
                    }
                }
            }
        });
        assertEquals("Back again.", session.run("Again.").text());
    }

    @Test
    void aLineOf60MbIsRead() {
        assertEquals("before ".length() + 60_000_000, fake("long").run("Go.").text().length());
    }

    @Test
    void aMalformedLineAndAnUnknownEventAreMessagesAndTheStreamContinues() {
        List<Message> messages = collect(fake("strange").stream("Go."));
        assertEquals("abd", joined(messages));
        List<Message.Unknown> unknown = only(messages, Message.Unknown.class);
        assertEquals(4, unknown.size(), unknown.toString());
        assertEquals(2, unknown.stream().filter(Message.Unknown::isMalformed).count());
        assertEquals("this is not JSON", unknown.get(0).meta().raw());
        assertEquals(3L, Json.parse(unknown.get(1).meta().raw()).get("depth").value());
        Message.Thought thought = only(messages, Message.Thought.class).get(0);
        assertEquals("calm", Place.text(Json.parse(thought.meta().raw()), "mood"), "unknown fields are kept");
    }

    @Test
    void aFloodOnStandardErrorStopsNothing() {
        assertEquals("after the flood", closing(AgentManager.open(fakeOptions("flood").logger(new RecordingLogger()).build())).run("Go.").text());
    }

    @Test
    void theEndOfStandardErrorIsInTheErrorOfAHubThatDied() {
        AgentManager manager = closing(AgentManager.open(fakeOptions("die").logger(new RecordingLogger()).build()));
        QwenException.WorkerExited lost = assertThrows(QwenException.WorkerExited.class, () -> manager.run("Go."));
        assertTrue(lost.isHub());
        assertEquals(3, lost.exitCode());
        assertEquals(0, lost.signal());
        assertTrue(lost.stderr().endsWith("out of cheese\n") && lost.stderr().length() <= 64 * 1024);
        assertTrue(lost.getMessage().contains("out of cheese"), lost.getMessage());
    }

    @Test
    void aMissingBinaryIsAnErrorThatTellsWhereItWasSearched() {
        QwenException.BinaryNotFound missing = assertThrows(QwenException.BinaryNotFound.class,
                () -> AgentManager.open(AgentOptions.builder().binaryPath(Path.of("/no/such/qwen")).build()));
        assertTrue(missing.getMessage().contains("/no/such/qwen"));
    }

    @Test
    void aProgramThatIsNotAHubIsAnErrorWithinTheStartTimeout() {
        for (String program : List.of("/bin/true", "/bin/false", "/bin/echo")) {
            QwenException.Protocol wrong = assertThrows(QwenException.Protocol.class,
                    () -> AgentManager.open(AgentOptions.builder().binaryPath(Path.of(program)).build()));
            assertTrue(wrong.getMessage().contains(program), wrong.getMessage());
        }
        AgentOptions silent = fakeOptions("silent").timeouts(Timeouts.defaults().withStart(Duration.ofMillis(1500))).build();
        assertTrue(assertThrows(QwenException.Protocol.class, () -> AgentManager.open(silent)).getMessage().contains("1500 ms"));
        QwenException.Protocol fatal = assertThrows(QwenException.Protocol.class, () -> AgentManager.open(fakeOptions("fatal").build()));
        assertTrue(fatal.getMessage().contains("the settings are broken"));
    }

    @Test
    void anotherProtocolVersionIsAnErrorThatNamesBoth() {
        QwenException.Protocol other = assertThrows(QwenException.Protocol.class, () -> AgentManager.open(fakeOptions("version").build()));
        assertTrue(other.getMessage().contains("7.2") && other.getMessage().contains("1.0"), other.getMessage());
    }

    @Test
    void promptsAndInstructionsOfAnySizeGoThroughStandardInput() throws IOException {
        Place place = place(say("read", gate("held"), " all"));
        String instructions = "secret-instruction " + "i".repeat(200_000);
        AgentManager manager = place.manager(place.options().systemPrompt(instructions));
        Session session = manager.createSession();
        String prompt = "secret-prompt " + "p".repeat(300_000);
        try (Turn turn = session.stream(prompt)) {
            for (Message message : turn) {
                if (message instanceof Message.Text piece && piece.text().equals("read")) {
                    List<Long> all = new ArrayList<>(Processes.children(manager.pid()));
                    all.add(manager.pid());
                    for (long pid : all) {
                        assertFalse(Files.readString(Path.of("/proc/" + pid + "/cmdline")).contains("secret-"));
                    }
                    place.open("held");
                }
            }
        }
        assertTrue(last(place.texts("user")).contains(prompt));
        assertTrue(String.join("", place.texts("system")).contains(instructions));
    }

    /** What a test does at a message of a turn. */
    private interface Act {
        /** Returns whether the iteration continues. */
        boolean at(AgentManager manager, Session session, Turn turn) throws Exception;
    }

    /** Runs a turn with text, a tool and a question, once for each of its messages, and acts at that message. */
    private void atEachMessage(Act act) throws Exception {
        int count = Integer.MAX_VALUE;
        for (int point = 0; point < count; point++) {
            try (Place place = Place.of(sayAbout("Make a file.", "Making ", "a file.", touch("a")), sayAbout("Make a file.", "Done."),
                    sayAbout("And now?", "Next."))) {
                AgentManager manager = place.manager(place.options().canUseTool(request -> Decision.allow()));
                Session session = manager.createSession();
                int seen = 0;
                try (Turn turn = session.stream("Make a file.")) {
                    for (Message message : turn) {
                        assertNotNull(message);
                        if (seen++ == point && !act.at(manager, session, turn)) {
                            break;
                        }
                    }
                } catch (QwenException.Closed | QwenException.Interrupted e) {
                    // The point of the test.
                    assertTrue(Thread.interrupted() || e instanceof QwenException.Closed);
                }
                count = seen <= point ? point : count;
                try {
                    assertEquals("Next.", session.run("And now?").text());
                } catch (QwenException.Closed e) {
                    assertThrows(QwenException.Closed.class, () -> session.setModel("x"));
                }
            }
        }
        assertTrue(count > 8, "only " + count + " messages");
    }

    @Test
    void anIterationAbandonedAtEveryMessageFreesEverythingAndTheSessionContinues() throws Exception {
        atEachMessage((manager, session, turn) -> false);
    }

    @Test
    void interruptionAtEveryMessageEndsTheTurnAndTheSessionContinues() throws Exception {
        atEachMessage((manager, session, turn) -> {
            Thread.currentThread().interrupt();
            return true;
        });
    }

    @Test
    void aTurnInterruptedAtEveryMessageHasAResultAndTheSessionContinues() throws Exception {
        atEachMessage((manager, session, turn) -> {
            turn.interrupt();
            return true;
        });
    }

    @Test
    void closeAtEveryMessageReturnsWithinItsTimeout() throws Exception {
        atEachMessage((manager, session, turn) -> {
            long started = System.nanoTime();
            // Any thread may close, several at once.
            CompletableFuture<Void> other = CompletableFuture.runAsync(session::close);
            session.close();
            other.get();
            assertTrue(System.nanoTime() - started < Duration.ofSeconds(6).toNanos());
            assertThrows(QwenException.Closed.class, () -> session.run("More."));
            return true;
        });
    }

    @Test
    void closingTheManagerAtEveryMessageReturnsWithinItsTimeout() throws Exception {
        atEachMessage((manager, session, turn) -> {
            long started = System.nanoTime();
            manager.close();
            manager.close();
            assertTrue(System.nanoTime() - started < Duration.ofSeconds(6).toNanos());
            assertThrows(QwenException.class, manager::createSession);
            return true;
        });
    }

    @Test
    void cancellingAFutureInterruptsTheTurnAndTheSessionContinues() throws Exception {
        Place place = place(say("half", gate("never")), say("next"), say("of a manager"));
        AgentManager manager = place.manager();
        Session session = manager.createSession();
        CompletableFuture<Result> running = session.runAsync("Work.");
        Processes.until("the model is asked", () -> place.requests().size() == 1);
        assertTrue(running.cancel(true));
        assertTrue(running.isCancelled());
        // The model sees that the worker is gone.
        place.control("GET", "gone/0");
        assertEquals("next", session.run("Next.").text());
        assertEquals("of a manager", manager.runAsync("Hello.").get().text());
        session.close();
        assertInstanceOf(QwenException.Closed.class, assertThrows(ExecutionException.class, () -> session.runAsync("More.").get()).getCause());
    }

    @Test
    void aThreadThatWasInterruptedBeforeACallSendsNothing() {
        Place place = place(say("one"));
        Session session = place.session();
        Thread.currentThread().interrupt();
        assertThrows(QwenException.Interrupted.class, () -> session.run("Hello."));
        assertTrue(Thread.interrupted());
        Thread.currentThread().interrupt();
        assertThrows(QwenException.Interrupted.class, () -> session.setModel("x"));
        assertTrue(Thread.interrupted());
        assertEquals("one", session.run("Hello.").text());
        Thread.currentThread().interrupt();
        assertThrows(QwenException.Interrupted.class, () -> AgentManager.open(place.options().build()));
        assertTrue(Thread.interrupted());
    }
}
