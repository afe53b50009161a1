package io.github.qwenagent.suite;

import static io.github.qwenagent.suite.Place.call;
import static io.github.qwenagent.suite.Place.say;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.qwenagent.Agent;
import io.github.qwenagent.AgentManager;
import io.github.qwenagent.Binary;
import io.github.qwenagent.CanUseTool;
import io.github.qwenagent.Decision;
import io.github.qwenagent.Hook;
import io.github.qwenagent.HookEvent;
import io.github.qwenagent.HookResult;
import io.github.qwenagent.Limits;
import io.github.qwenagent.Message;
import io.github.qwenagent.OptionsBuilder;
import io.github.qwenagent.PermissionMode;
import io.github.qwenagent.Pool;
import io.github.qwenagent.QwenException;
import io.github.qwenagent.Result;
import io.github.qwenagent.Session;
import io.github.qwenagent.SessionOptions;
import io.github.qwenagent.SettingsProfile;
import io.github.qwenagent.Timeouts;
import io.github.qwenagent.ToolResult;
import io.github.qwenagent.TurnOptions;
import io.github.qwenagent.Usage;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Options and results are values, and every option is understood by the program. */
class ValuesTest extends SuiteTest {
    private static final Duration SECOND = Duration.ofSeconds(1);

    @Test
    void everyBoundIsUnderstoodByTheProgram() {
        Place place = looping(say("fine"));
        Limits limits = Limits.none().withMaxTurns(5).withMaxSessionTurns(50).withMaxToolCalls(5).withMaxWallTime(Duration.ofSeconds(30)).withMaxTokensTotal(1 << 30);
        assertEquals(new Limits(5, 50, 5, Duration.ofSeconds(30), 1 << 30, 0), limits);
        Pool pool = Pool.defaults().withMinWorkers(1).withMaxWorkers(3).withIdleTimeout(Duration.ofSeconds(60)).withMaxSessionsPerWorker(9).withHealthCheckInterval(SECOND)
                .withHeartbeatInterval(SECOND).withHeartbeatTimeout(Duration.ofSeconds(9)).withMaxQueue(7).withQueueTimeout(Duration.ofSeconds(9));
        assertEquals(1 + 3 + 9 + 7, pool.minWorkers() + pool.maxWorkers() + pool.maxSessionsPerWorker() + pool.maxQueue());
        assertEquals(pool.heartbeatInterval(), pool.healthCheckInterval());
        assertEquals(pool.heartbeatTimeout(), pool.queueTimeout());
        assertEquals(Duration.ofSeconds(60), pool.idleTimeout());
        Timeouts timeouts = Timeouts.defaults().withTool(SECOND).withClose(Duration.ofSeconds(9));
        assertEquals(SECOND, timeouts.tool());
        AgentManager manager = place.manager(place.options().limits(limits).pool(pool).timeouts(timeouts));
        assertEquals("fine", manager.run("Hello.").text());
        assertEquals(limits.maxTurns() + limits.maxToolCalls(), 10);
        assertEquals(limits.maxTokensTotal(), 1L << 30);
        assertEquals(50, limits.maxSessionTurns());
    }

    @Test
    void aBudgetEndsATurnThatCostsMore() {
        Place place = looping(say(call("list_directory", Map.of("path", ".")), Place.usage(1_000_000, 10)));
        Map<String, Object> prices = Map.of("model", Map.of("prices", Map.of("mock", Map.of("input", 1.0, "output", 1.0))));
        Session session = place.session(place.options().settings(prices).limits(Limits.none().withMaxBudgetUsd(0.5)));
        QwenException.TurnFailed spent = assertThrows(QwenException.TurnFailed.class, () -> session.run("Look."));
        Result result = spent.result().orElseThrow();
        assertTrue(result.costUsd() > 0.5 && result.usage().costUsd() > 0.5);
        assertEquals(0.5, Limits.none().withMaxBudgetUsd(0.5).maxBudgetUsd());
        assertNull(Limits.none().maxWallTime());
    }

    @Test
    void usageAndMessagesHaveTheirDetails() {
        Place place = place(say(Map.of("thought", "I look."), "ok", Place.usage(9, 4)),
                say(call("run_shell_command", Map.of("command", "echo x", "description", "echo"))), say("end"));
        AgentManager manager = place.manager(place.options().permissionMode(PermissionMode.YOLO));
        Session session = manager.createSession();
        List<Message> messages = collect(session.stream("Think."));
        Usage usage = result(messages).usage();
        assertEquals(13, usage.totalTokens());
        assertFalse(usage.isEstimated());
        Message.Thought thought = only(messages, Message.Thought.class).get(0);
        assertEquals("", thought.parentToolCallId());
        assertTrue((thought.subject() + thought.description()).contains("I look."));
        List<Message> more = collect(session.stream("Echo."));
        assertEquals("", last(only(more, Message.ToolStatus.class)).parentToolCallId());
        assertEquals(0, only(more, Message.ToolCallDelta.class).get(0).index());
        assertTrue(only(more, Message.Terminal.class).stream().anyMatch(output -> output.channel().equals("stdout")));
        assertTrue(only(more, Message.SessionEvent.class).stream().allMatch(event -> event.metrics() == null || event.value() == null || !event.message().isEmpty()));
        assertNull(result(more).error());
    }

    @Test
    void oneHookMayServeManagersAndSessions() {
        AtomicInteger calls = new AtomicInteger();
        Hook hook = input -> {
            calls.incrementAndGet();
            return HookResult.proceed();
        };
        Place place = looping(say("fine"));
        place.manager(withHook(place.options(), hook)).run("Hello.");
        place.manager().createSession(withHook(SessionOptions.builder(), hook).build()).run("Hello.");
        assertEquals(2, calls.get());
    }

    private static <B extends OptionsBuilder<B>> B withHook(B builder, Hook hook) {
        return builder.hook(HookEvent.USER_PROMPT_SUBMIT, hook);
    }

    @Test
    void aTenantIsNamedToTheHub() {
        Place place = place();
        AgentManager manager = place.manager();
        QwenException.RequestRefused refused = assertThrows(QwenException.RequestRefused.class,
                () -> manager.createSession(SessionOptions.builder().tenant("not a name").build()));
        assertEquals("invalid_tenant", refused.code());
    }

    @Test
    void aProfileHasLayersAndTheRuntimeProvidesNoProgramForOtherPlatforms() throws Exception {
        Agent agent = Agent.of("Scouts", "You are a scout.");
        assertEquals(new Agent(agent.description(), agent.prompt(), null, null), agent);
        CanUseTool callback = request -> Decision.deny("no");
        assertFalse(callback.decide(null).toString().isEmpty());
        assertEquals(Duration.ofMinutes(1), Timeouts.defaults().callback());
        assertEquals("text", ToolResult.Content.text("x").fields().get("type"));
        assertEquals(List.of(SessionOptions.class, TurnOptions.class), List.of(SessionOptions.defaults().getClass(), TurnOptions.defaults().getClass()));
        SettingsProfile profile = new SettingsProfile(Map.of(), Map.of("a", 1), null, null, Map.of());
        assertEquals(Map.of("a", 1), profile.systemDefaults());
        assertEquals(Map.of(), profile.system());
        assertTrue(profile.user() == null && profile.workspace() == null);
        Result.Failure error = new Result.Failure("code", "type", "message", true, SECOND);
        assertEquals(SECOND, error.retryAfter());
        Binary.Provider provider = ServiceLoader.load(Binary.Provider.class).iterator().next();
        assertNull(provider.open("plan9-mips"));
    }
}
