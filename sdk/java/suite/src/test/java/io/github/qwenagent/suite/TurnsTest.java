package io.github.qwenagent.suite;

import static io.github.qwenagent.suite.Place.call;
import static io.github.qwenagent.suite.Place.gate;
import static io.github.qwenagent.suite.Place.say;
import static io.github.qwenagent.suite.Place.usage;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.qwenagent.Agent;
import io.github.qwenagent.Description;
import io.github.qwenagent.Limits;
import io.github.qwenagent.Message;
import io.github.qwenagent.Named;
import io.github.qwenagent.PermissionMode;
import io.github.qwenagent.QwenException;
import io.github.qwenagent.Result;
import io.github.qwenagent.Session;
import io.github.qwenagent.Status;
import io.github.qwenagent.SteerOutcome;
import io.github.qwenagent.Turn;
import io.github.qwenagent.TurnOptions;
import io.github.qwenagent.Typed;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class TurnsTest extends SuiteTest {
    @Test
    void aTurnYieldsMessagesAndEndsWithTheResult() {
        Place place = place(say("It ", "works.", usage(12, 3)));
        List<Message> messages = collect(place.session().stream("Does it work?"));
        Result result = result(messages);
        assertEquals("It works.", result.text());
        assertEquals(Status.DONE, result.status());
        assertTrue(result.isDone() && result.isOk());
        assertEquals(12, result.usage().inputTokens());
        assertEquals(3, result.usage().outputTokens());
        assertEquals(1, result.usage().calls());
        Message.Assistant said = only(messages, Message.Assistant.class).get(0);
        assertEquals("It works.", said.text());
        assertEquals("stop", said.finishReason());
        assertSame(said, messages.get(messages.size() - 2), "the final answer is the message before the result");
        assertFalse(result.meta().sessionId().isEmpty() || result.meta().promptId().isEmpty() || result.meta().raw().isEmpty());
        assertTrue(result.duration().compareTo(Duration.ZERO) >= 0);
        assertNull(result.costUsd());
    }

    @Test
    void textArrivesInPiecesThatJoinedAreTheTextOfTheResult() {
        String[] pieces = {"Plain, ", "with \"quotes\" and \\ and \n, ", "完了 🎉, ", "\"delta\":{\"content\":\"", "\u2028 end"};
        Place place = place(say((Object[]) pieces));
        List<Message> messages = collect(place.session().stream("Go."));
        assertTrue(only(messages, Message.Text.class).size() >= pieces.length);
        assertEquals(String.join("", pieces), joined(messages));
        assertEquals(joined(messages), result(messages).text());
    }

    @Test
    void promptsOfASessionContinueOneConversation() {
        Place place = place(say("Hello Ada."), say("Your name is Ada."));
        Session session = place.session();
        session.run("My name is Ada.");
        session.run("What is my name?");
        String history = place.history();
        for (String wanted : List.of("My name is Ada.", "Hello Ada.", "What is my name?")) {
            assertTrue(history.contains(wanted), history);
        }
        assertEquals("Your name is Ada.", session.lastResult().text());
    }

    @Test
    void promptsThatAreSentWhileAnEarlierOneRunsEachGetTheirResult() {
        Place place = place(say("one", gate("held")), say("two"), say("three"));
        Session session = place.session();
        List<Turn> turns = new ArrayList<>();
        for (String prompt : List.of("1", "2", "3")) {
            turns.add(session.stream(prompt));
        }
        place.open("held");
        List<String> texts = new ArrayList<>();
        for (Turn turn : turns) {
            Result result = turn.result();
            assertEquals(turn.promptId(), result.meta().promptId());
            texts.add(result.text());
            turn.close();
        }
        assertEquals(List.of("one", "two", "three"), texts);
    }

    @Test
    void steerJoinsTheRunningTurnBeforeItsNextModelCall() throws Exception {
        Place place = place(say("Reading.", gate("held"), call("read_file", Map.of("file_path", "a.txt"))), say("Both done."), say("Alone."));
        place.file("a.txt", "alpha");
        Session session = place.session();
        CompletableFuture<SteerOutcome> outcome = new CompletableFuture<>();
        RecordingLogger records = new RecordingLogger();
        Session steered = place.session(place.options().logger(records));
        session.close();
        List<Message> messages = new ArrayList<>();
        try (Turn turn = steered.stream("Read a.txt.")) {
            for (Message message : turn) {
                messages.add(message);
                if (message instanceof Message.Text && !outcome.isDone() && records.count("prompt sent") == 1) {
                    Thread thread = new Thread(() -> outcome.complete(steered.steer("And mention beta.")));
                    thread.start();
                    Processes.until("the prompt is sent", () -> records.count("prompt sent") == 2);
                    // The worker reads its input in order: with this answer it has the prompt.
                    steered.request("mcp_status", Map.of());
                    place.open("held");
                }
            }
        }
        assertTrue(outcome.get().hasJoined());
        assertNull(outcome.get().result());
        assertEquals("Both done.", result(messages).text());
        assertTrue(last(place.texts("user")).contains("And mention beta."));
        // Without a running turn it is an ordinary prompt.
        SteerOutcome alone = steered.steer("Anything else?");
        assertFalse(alone.hasJoined());
        assertEquals("Alone.", alone.result().text());
    }

    @Test
    void aSlashCommandHasAResultAndCallsNoModel() {
        Place place = place();
        Session session = place.session();
        List<Message> messages = collect(session.stream("/help"));
        Message.Command command = only(messages, Message.Command.class).get(0);
        assertEquals(List.of("help"), command.path());
        assertEquals("message", command.outcome().type());
        assertTrue(result(messages).isDone() && result(messages).text().contains("help"));
        QwenException.TurnFailed unknown = assertThrows(QwenException.TurnFailed.class, () -> session.run("/no-such-command"));
        assertEquals("command_failed", unknown.code());
        assertTrue(place.requests().isEmpty());
    }

    @Test
    void interruptEndsTheTurnAsCancelledAndTheSessionContinues() {
        Place place = place(say("Working", gate("never")), say("Still here."));
        Session session = place.session();
        List<Message> messages = new ArrayList<>();
        try (Turn turn = session.stream("Work.")) {
            for (Message message : turn) {
                messages.add(message);
                if (message instanceof Message.Text) {
                    session.interrupt();
                }
            }
        }
        assertEquals(Status.CANCELLED, result(messages).status());
        assertFalse(result(messages).isDone());
        assertEquals("Still here.", session.run("Are you there?").text());
        session.interrupt();
    }

    @Test
    void modelAndPermissionModeChangeWithinASession() {
        Place place = place(say("1"), say("2"), say(call("write_file", Map.of("file_path", "made.txt", "content", "x"))), say("written"));
        Session session = place.session();
        session.run("One.");
        session.setModel("other-model");
        session.run("Two.");
        assertEquals("mock", Place.text(place.requests().get(0), "model"));
        assertEquals("other-model", Place.text(place.requests().get(1), "model"));
        session.setPermissionMode(PermissionMode.AUTO_EDIT);
        assertTrue(session.run("Write made.txt.").isOk());
        assertTrue(place.exists("made.txt"));
        QwenException.RequestRefused refused = assertThrows(QwenException.RequestRefused.class,
                () -> session.request("set_permission_mode", Map.of("mode", "anything")));
        assertEquals("set_permission_mode", refused.request());
        assertFalse(refused.code().isEmpty() || refused.isRetryable());
    }

    @Test
    void aLimitEndsTheTurnWithItsCauseAndWhatThereIs() {
        Map<Status, Limits> each = Map.of(Status.MAX_TURNS, Limits.none().withMaxTurns(1), Status.MAX_TOOL_CALLS,
                Limits.none().withMaxToolCalls(1), Status.MAX_TOKENS, Limits.none().withMaxTokensTotal(5), Status.MAX_WALL_TIME,
                Limits.none().withMaxWallTime(Duration.ofMillis(1)));
        each.forEach((status, limits) -> {
            Place place = looping(say("Looking.", call("list_directory", Map.of("path", ".")), usage(10, 10)));
            Session session = place.session(place.options().limits(limits));
            QwenException.TurnFailed failed = assertThrows(QwenException.TurnFailed.class, () -> session.run("Look around."));
            assertEquals(status, failed.result().orElseThrow().status());
            assertTrue(failed.getMessage().contains(status.toString()), failed.getMessage());
        });
    }

    @Test
    void aPromptThatIsRefusedIsAnErrorAndNotAHang() {
        Place place = place(say("one"), say("two"));
        Session session = place.session();
        TurnOptions named = TurnOptions.builder().promptId("p-1").build();
        session.run("One.", named);
        QwenException.TurnFailed refused = assertThrows(QwenException.TurnFailed.class, () -> session.run("One.", named));
        assertEquals("duplicate_prompt_id", refused.code());
        assertEquals(Optional.empty(), refused.result());
        assertFalse(refused.isRetryable() || refused.type().isEmpty());
        assertEquals("two", session.run("Two.").text());
    }

    @Test
    void usageIsOnEveryResultByModelAndOfFailedTurnsToo() {
        Place place = place(say(call("list_directory", Map.of("path", ".")), usage(20, 4)),
                Map.of("steps", List.of(Map.of("status", 400, "body", "{\"error\":{\"message\":\"no\"}}"))));
        QwenException.TurnFailed failed = assertThrows(QwenException.TurnFailed.class, () -> place.session().run("Look."));
        Result result = failed.result().orElseThrow();
        assertEquals(Status.ERROR, result.status());
        assertNotNull(result.error());
        assertEquals(20, result.usage().inputTokens());
        assertEquals(4, result.usageByModel().get("mock").outputTokens());
    }

    /** What a typed result is read into. */
    record Answer(@Description("The capital") String city, @Named("size_in_millions") int size, Optional<List<String>> notes, Kind kind) {}

    /** A choice in a typed result. */
    enum Kind {
        @Named("old-town") OLD, NEW
    }

    @Test
    void structuredOutputIsACheckedValueOrAnError() {
        Place place = looping(say(call("structured_output", Map.of("city", "Paris", "size_in_millions", 2, "kind", "old-town"))));
        Session session = place.session();
        Typed<Answer> typed = session.run("The capital of France?", Answer.class);
        assertEquals(new Answer("Paris", 2, Optional.empty(), Kind.OLD), typed.output());
        assertEquals(typed.output(), typed.result().outputAs(Answer.class));
        assertEquals("Paris", Place.text(typed.result().output(), "city"));
        assertEquals(typed.output(), place.manager().run("And again?", Answer.class).output());
    }

    @Test
    void structuredOutputThatDoesNotComeIsAnError() {
        Place place = looping(say("I would rather talk."));
        Session session = place.session();
        QwenException.StructuredOutput none = assertThrows(QwenException.StructuredOutput.class,
                () -> session.run("The capital of France?", Answer.class));
        assertEquals(Status.ERROR, none.result().orElseThrow().status());
        assertInstanceOf(QwenException.TurnFailed.class, none.getCause());
        Result plain = session.run("Just talk.");
        assertThrows(QwenException.StructuredOutput.class, () -> plain.outputAs(Answer.class));
    }

    @Test
    void agentsOfTheHostAreOfferedAndTheirWorkCountsForTheTurn() {
        Place place = place(say(call("agent", Map.of("description", "look", "prompt", "Look.", "subagent_type", "scout")), usage(10, 1)),
                say("I am the scout.", usage(10, 1)), say("The scout is back.", usage(10, 1)));
        Session session = place.session(place.options().permissionMode(PermissionMode.YOLO)
                .agent("scout", new Agent("Scouts ahead", "You are a scout.", List.of("read_file"), null)));
        Result result = session.run("Send the scout.");
        assertEquals("The scout is back.", result.text());
        assertEquals(30, result.usage().inputTokens());
        Result.AgentUsage scout = result.usageByAgent().get("scout");
        assertEquals(List.of(10L, 1L, 1L, 0L), List.of(scout.usage().inputTokens(), scout.usage().calls(), scout.runs(), scout.toolCalls()));
        assertEquals(3, result.usage().calls());
    }

    @Test
    void aTurnIsReadOnce() {
        Place place = place(say("one"));
        try (Turn turn = place.session().stream("Hello.")) {
            turn.result();
            assertThrows(IllegalStateException.class, turn::iterator);
            assertThrows(IllegalStateException.class, turn::publisher);
        }
    }
}
