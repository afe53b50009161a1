package io.github.qwenagent.suite;

import static io.github.qwenagent.suite.Place.call;
import static io.github.qwenagent.suite.Place.say;
import static io.github.qwenagent.suite.Place.touch;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.CanUseTool;
import io.github.qwenagent.Decision;
import io.github.qwenagent.Description;
import io.github.qwenagent.HookEvent;
import io.github.qwenagent.HookInput;
import io.github.qwenagent.HookResult;
import io.github.qwenagent.Json;
import io.github.qwenagent.McpConnection;
import io.github.qwenagent.PermissionMode;
import io.github.qwenagent.PermissionRequest;
import io.github.qwenagent.QwenException;
import io.github.qwenagent.Result;
import io.github.qwenagent.Session;
import io.github.qwenagent.SessionOptions;
import io.github.qwenagent.Timeouts;
import io.github.qwenagent.Tool;
import io.github.qwenagent.ToolException;
import io.github.qwenagent.ToolResult;
import io.github.qwenagent.ToolServer;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class CallbacksTest extends SuiteTest {
    private static Session deciding(Place place, CanUseTool callback) {
        return place.session(place.options().canUseTool(callback));
    }

    /** The arguments of the shell tool. */
    record Shell(String command, String description) {}

    @Test
    void everyQuestionReachesTheCallbackAndAllowRunsTheCall() {
        Place place = place(say(touch("a")), say(touch("b")), say("done"));
        List<PermissionRequest> asked = new CopyOnWriteArrayList<>();
        Session session = deciding(place, request -> {
            asked.add(request);
            return Decision.allow();
        });
        assertTrue(session.run("Make files.").isOk());
        assertTrue(place.exists("a") && place.exists("b"));
        assertEquals(2, asked.size());
        PermissionRequest first = asked.get(0);
        assertEquals("touch a", first.input().as(Shell.class).command());
        assertEquals("run_shell_command", first.toolName());
        assertEquals(session.id(), first.sessionId());
        assertFalse(first.toolCallId().isEmpty() || first.promptId().isEmpty());
        assertEquals("", first.agentId() + first.blockedPath());
        assertNotNull(first.reason());
        assertEquals("exec", first.confirmation().type());
        assertEquals("touch a", first.confirmation().command());
    }

    @Test
    void denyRefusesTheCallTellsTheModelAndIsListed() {
        Place place = place(say(touch("a")), say("I may not."));
        Result result = deciding(place, request -> Decision.deny("Not on Tuesdays.")).run("Make a file.");
        assertTrue(result.isDone());
        assertFalse(result.isOk() || place.exists("a"));
        Result.Denial denial = result.denials().get(0);
        assertEquals("run_shell_command", denial.toolName());
        assertTrue(denial.reason().contains("Not on Tuesdays."), denial.reason());
        assertEquals("touch a", Place.text(denial.arguments(), "command"));
        assertFalse(denial.toolCallId().isEmpty());
        assertTrue(String.join("", place.texts("tool")).contains("Not on Tuesdays."));
    }

    @Test
    void askAndNullAndNoCallbackAreDenials() {
        Map<String, CanUseTool> each = new LinkedHashMap<>();
        each.put("ask", request -> Decision.ask());
        each.put("null", request -> null);
        each.put("none", null);
        each.forEach((name, callback) -> {
            Place place = place(say(touch("a")), say("Well."));
            Session session = callback == null ? place.session() : deciding(place, callback);
            assertEquals(1, session.run("Make a file.").denials().size(), name);
            assertFalse(place.exists("a"));
        });
    }

    @Test
    void aCallRunsWithTheInputThatTheCallbackReturned() {
        Place place = place(say(touch("a")), say("done"));
        deciding(place, request -> Decision.allowWith(new Shell("touch b", "make another file"))).run("Make a file.");
        assertTrue(place.exists("b") && !place.exists("a"));
    }

    @Test
    void aDecisionCanAddRulesChangeTheModeAndEndTheTurn() {
        Place place = place(say(touch("a")), say(touch("b")), say("done"), say(call("write_file", Map.of("file_path", "c", "content", "x"))),
                say(call("write_file", Map.of("file_path", "d", "content", "x"))), say("done"), say("unused"));
        AtomicInteger questions = new AtomicInteger();
        Session session = deciding(place, request -> switch (questions.incrementAndGet()) {
            case 1 -> Decision.allow().forRules("Bash(touch *)");
            case 2 -> Decision.allow().withMode(PermissionMode.AUTO_EDIT);
            default -> Decision.deny("Enough.").andInterrupt();
        });
        session.run("Make files.");
        assertEquals(1, questions.get());
        assertTrue(place.exists("b"));
        session.run("Write files.");
        assertEquals(2, questions.get());
        assertTrue(place.exists("c") && place.exists("d"));
    }

    @Test
    void rulesOfTheHostDecideBeforeTheCallback() {
        Place place = place(say(touch("a")), say(touch("b,c")), say(touch("d")), say("done"));
        List<String> asked = new CopyOnWriteArrayList<>();
        Session session = place.session(place.options().allowedTools("Bash(touch a)", "Bash(touch d)").askTools("Bash(touch d)")
                .disallowedTools("Bash(touch b,c)").canUseTool(request -> {
                    asked.add(Place.text(request.input(), "command"));
                    return Decision.allow();
                }));
        assertEquals(1, session.run("Make files.").denials().size());
        assertEquals(List.of("touch d"), asked);
        assertTrue(place.exists("a") && place.exists("d") && !place.exists("b,c"));
    }

    @Test
    void callbacksAreServedToTheLastCallOfATurn() {
        Place place = place(say(touch("x")), say(touch("x")), say(touch("x")), say(touch("x")), say(touch("x")), say("end"));
        AtomicInteger questions = new AtomicInteger();
        Result result = place.manager(place.options().canUseTool(request -> {
            questions.incrementAndGet();
            return Decision.allow();
        })).run("Make a file five times.");
        assertEquals(5, questions.get());
        assertTrue(result.isOk());
    }

    @Test
    void aHookRefusesACallAndTheModelIsToldWhy() {
        Place place = place(say(touch("a")), say("I see."));
        AtomicReference<HookInput> seen = new AtomicReference<>();
        place.session(place.options().permissionMode(PermissionMode.YOLO).hook(HookEvent.PRE_TOOL_USE, "Bash", input -> {
            seen.set(input);
            return HookResult.block("Frozen for the release.");
        })).run("Make a file.");
        assertFalse(place.exists("a"));
        assertTrue(String.join("", place.texts("tool")).contains("Frozen for the release."));
        HookInput input = seen.get();
        assertEquals(HookEvent.PRE_TOOL_USE, input.event());
        assertEquals("run_shell_command", input.toolName());
        assertEquals("touch a", Place.text(input.toolInput(), "command"));
        assertFalse(input.toolCallId().isEmpty() || input.promptId().isEmpty() || input.sessionId().isEmpty());
        assertEquals("run_shell_command", Place.text(input.raw(), "tool_name"));
    }

    @Test
    void hooksChangeInputAndOutputAndAddForTheModel() {
        Place place = place(say(touch("a")), say("done"));
        place.session(place.options().permissionMode(PermissionMode.YOLO)
                .hook(HookEvent.PRE_TOOL_USE, input -> HookResult.proceed().withUpdatedInput(new Shell("touch b", "make another file")))
                .hook(HookEvent.POST_TOOL_USE, input -> {
                    assertNotNull(input.toolResponse());
                    return HookResult.proceed().withUpdatedOutput("replaced").withAdditionalContext("and more").withSystemMessage("shown");
                })
                .hook(HookEvent.USER_PROMPT_SUBMIT, input -> HookResult.proceed().withAdditionalContext("prompt was: " + input.prompt())))
                .run("Make a file.");
        assertTrue(place.exists("b") && !place.exists("a"));
        assertTrue(String.join("", place.texts("tool")).contains("replaced"));
        assertTrue(String.join("", place.texts("user")).contains("prompt was: Make a file."));
    }

    @Test
    void aHookAnswersForTheCallbackStopsTheTurnOrRefusesIfItFails() {
        Place place = place(say(touch("a")), say(touch("b")), say("unused"));
        Session session = place.session(place.options().hook(HookEvent.PRE_TOOL_USE, "Bash", input -> {
            boolean isFirst = Place.text(input.toolInput(), "command").equals("touch a");
            return isFirst ? HookResult.proceed().withPermission(true, "fine") : HookResult.stop("That is enough.");
        }));
        try {
            session.run("Make files.");
        } catch (QwenException.TurnFailed e) {
            assertTrue(e.result().isPresent());
        }
        assertTrue(place.exists("a") && !place.exists("b"));
        Place strict = place(say(touch("a")), say("Well."));
        strict.session(strict.options().permissionMode(PermissionMode.YOLO).strictHook(HookEvent.PRE_TOOL_USE, "Bash", input -> {
            throw new IllegalStateException("broken");
        })).run("Make a file.");
        assertFalse(strict.exists("a"));
    }

    @Test
    void aSessionEndHookRunsWhenTheSessionIsClosed() {
        Place place = place(say("hi"));
        CompletableFuture<HookEvent> ended = new CompletableFuture<>();
        Session session = place.session(place.options().hook(HookEvent.SESSION_END, input -> {
            ended.complete(input.event());
            return HookResult.proceed();
        }));
        session.run("Hello.");
        session.close();
        assertEquals(HookEvent.SESSION_END, ended.getNow(null), "the hook ran before close returned");
    }

    /** The arguments of the tool. */
    record Sum(@Description("The first number") int x, int y) {}

    private static Session calculating(Place place, Tool.Function<Sum> add) {
        ToolServer calculator = ToolServer.of("calc", Tool.of("add", "Adds two numbers", Sum.class, add).annotate(Map.of("readOnlyHint", true)));
        return place.session(place.options().tools(calculator).allowedTools("mcp__calc__*"));
    }

    private static Map<String, Object> add(int x, int y) {
        return call("mcp__calc__add", new Sum(x, y));
    }

    @Test
    void aFunctionOfTheHostIsATool() {
        Place place = place(say(add(2, 3)), say(call("mcp__calc__add", Map.of("x", "two"))), say(add(0, 0)), say("5"));
        Result result = calculating(place, sum -> {
            if (sum.x() == 0) {
                throw new ToolException("nothing to add");
            }
            return sum.x() + sum.y();
        }).run("Add.");
        List<String> told = place.texts("tool");
        assertEquals(3, told.size());
        assertEquals("5", told.get(0));
        assertTrue(told.get(1).contains("/x"), told.get(1));
        assertTrue(told.get(2).contains("nothing to add"), told.get(2));
        assertEquals("mcp__calc__add", result.toolCalls().get(0).name());
        assertEquals(new Sum(2, 3), result.toolCalls().get(0).arguments().as(Sum.class));
        assertFalse(result.toolCalls().get(0).argumentsText().isEmpty() || result.toolCalls().get(0).id().isEmpty());
    }

    @Test
    void toolsOfOneMessageRunInTheOrderThatTheModelWrote() {
        Place place = place(say(add(1, 1), add(2, 2)), say("both"));
        List<Integer> order = new CopyOnWriteArrayList<>();
        calculating(place, sum -> {
            order.add(sum.x());
            Thread.yield();
            order.add(-sum.x());
            return sum.x() + sum.y();
        }).run("Add twice.");
        assertEquals(List.of("2", "4"), place.texts("tool"));
        assertEquals(List.of(1, -1, 2, -2), order);
    }

    @Test
    void aToolIsInterruptedWithItsTurn() throws Exception {
        Place place = place(say(add(1, 1)), say("again"));
        CountDownLatch started = new CountDownLatch(1);
        CompletableFuture<Throwable> ended = new CompletableFuture<>();
        Session session = calculating(place, sum -> {
            started.countDown();
            try {
                new CountDownLatch(1).await();
            } catch (InterruptedException e) {
                ended.complete(e);
                throw e;
            }
            return 0;
        });
        CompletableFuture<Result> running = session.runAsync("Add.");
        started.await();
        running.cancel(true);
        assertNotNull(ended.get());
        assertEquals("again", session.run("Again.").text());
    }

    @Test
    void aCallbackThatThrowsIsADenialAndTheTurnContinues() {
        for (CanUseTool callback : List.<CanUseTool>of(request -> {
            throw new IOException("secret-detail");
        }, request -> {
            throw new AssertionError("secret-detail");
        })) {
            Place place = place(say(touch("a")), say("never mind"));
            RecordingLogger records = new RecordingLogger();
            Result result = place.session(place.options().canUseTool(callback).logger(records)).run("Make a file.");
            assertEquals("never mind", result.text());
            assertEquals(1, result.denials().size());
            assertFalse(place.exists("a"));
            assertFalse(String.join("", place.texts("tool")).contains("secret-detail"), "the host's text is for the host");
            assertEquals(1, records.count("callback failed"));
        }
    }

    @Test
    void aToolThatThrowsIsAFailureAndTheTurnContinues() {
        Place place = place(say(add(1, 1)), say("never mind"));
        Result result = calculating(place, sum -> {
            throw new IllegalStateException("secret-detail");
        }).run("Add.");
        assertEquals("never mind", result.text());
        assertFalse(String.join("", place.texts("tool")).contains("secret-detail"));
    }

    @Test
    void aCallbackThatNeverReturnsIsADenialAtItsDeadline() throws Exception {
        Place place = place(say(touch("a")), say("never mind"));
        CompletableFuture<Void> release = new CompletableFuture<>();
        AtomicBoolean wasInterrupted = new AtomicBoolean();
        Session session = place.session(place.options().timeouts(Timeouts.defaults().withCallback(Duration.ofMillis(100))).canUseTool(request -> {
            while (!release.isDone()) {
                try {
                    release.get();
                } catch (InterruptedException e) {
                    wasInterrupted.set(true);
                }
            }
            return Decision.allow();
        }));
        Result result = session.run("Make a file.");
        assertEquals("never mind", result.text());
        assertEquals(1, result.denials().size());
        Processes.until("the callback is interrupted", wasInterrupted::get);
        release.complete(null);
        assertFalse(place.exists("a"));
    }

    @Test
    void anAnswerAfterTheDeadlineChangesNothingAndAnswersNoOtherQuestion() {
        Place place = place(say(touch("a")), say(touch("b")), say("end"));
        CountDownLatch second = new CountDownLatch(1);
        CountDownLatch first = new CountDownLatch(1);
        AtomicInteger questions = new AtomicInteger();
        Session session = place.session(place.options().timeouts(Timeouts.defaults().withCallback(Duration.ofMillis(300))).canUseTool(request -> {
            if (questions.incrementAndGet() == 1) {
                // It allows, once the second question is open.
                awaitUninterruptibly(second);
                first.countDown();
                return Decision.allow();
            }
            second.countDown();
            awaitUninterruptibly(first);
            return Decision.deny("no");
        }));
        assertEquals(2, session.run("Make files.").denials().size());
        assertFalse(place.exists("a") || place.exists("b"));
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
        while (latch.getCount() > 0) {
            try {
                latch.await();
            } catch (InterruptedException e) {
                Thread.yield();
            }
        }
    }

    /** An MCP server that is written by hand. */
    private static final class Echo implements McpConnection {
        private final AtomicBoolean isClosed = new AtomicBoolean();

        @Override
        public Json handle(Json message) {
            if (message.get("id") == null) {
                return null;
            }
            Object result = switch (Place.text(message, "method")) {
                case "initialize" -> Map.of("protocolVersion", Place.text(message.get("params"), "protocolVersion"), "capabilities",
                        Map.of("tools", Map.of()), "serverInfo", Map.of("name", "echo", "version", "1"));
                case "tools/list" -> Map.of("tools", List.of(Map.of("name", "echo", "description", "Echoes", "inputSchema", Map.of("type", "object"))));
                default -> Map.of("content", List.of(Map.of("type", "text", "text", "echoed")));
            };
            return Json.of(Map.of("jsonrpc", "2.0", "id", message.get("id"), "result", result));
        }

        @Override
        public void close() {
            isClosed.set(true);
        }
    }

    /** No arguments. */
    record None() {}

    @Test
    void anyMcpServerInTheProcessIsAToolServer() {
        Place place = place(say(call("mcp__echo__echo", Map.of()), call("mcp__rich__show", Map.of())), say("done"));
        Echo echo = new Echo();
        Tool show = Tool.of("show", "Shows", None.class,
                none -> ToolResult.of(ToolResult.Content.text("rich"), ToolResult.Content.image(new byte[] {1}, "image/png")));
        Session session = place.session(place.options().permissionMode(PermissionMode.YOLO)
                .tools(ToolServer.connecting("echo", () -> echo), ToolServer.of("rich", show)));
        session.run("Echo.");
        String told = String.join(" ", place.texts("tool"));
        assertTrue(told.contains("echoed") && told.contains("rich"), told);
        session.close();
        assertTrue(echo.isClosed.get());
    }

    /** A record that contains itself. */
    record Endless(Endless next) {}

    /** A record with a component that has no JSON form. */
    record NoForm(Thread thread) {}

    @Test
    void optionsThatCanNeverWorkAreErrorsBeforeAProcessStarts() {
        List<Runnable> each = new ArrayList<>();
        Tool fine = Tool.of("b", "", None.class, none -> "");
        each.add(() -> ToolServer.of("a__b"));
        each.add(() -> ToolServer.command("", "true"));
        each.add(() -> ToolServer.http("a b", "http://127.0.0.1:1/", Map.of()));
        each.add(() -> Tool.of("b c", "", None.class, none -> ""));
        each.add(() -> ToolServer.of("a", fine, fine));
        each.add(() -> Tool.of("b", "", Endless.class, none -> ""));
        each.add(() -> Tool.of("b", "", NoForm.class, none -> ""));
        each.add(() -> Tool.of("b", "", String.class, none -> ""));
        each.add(() -> AgentOptions.builder().tools(ToolServer.of("a"), ToolServer.command("a", "true")));
        each.add(() -> SessionOptions.builder().id("../escape"));
        for (Runnable wrong : each) {
            IllegalArgumentException refused = assertThrows(IllegalArgumentException.class, wrong::run);
            assertFalse(refused.getMessage().isBlank());
        }
    }
}
