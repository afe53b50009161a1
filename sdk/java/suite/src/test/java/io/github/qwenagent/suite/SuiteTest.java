package io.github.qwenagent.suite;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.Message;
import io.github.qwenagent.Result;
import io.github.qwenagent.Session;
import io.github.qwenagent.SessionOptions;
import io.github.qwenagent.Turn;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.extension.ExtendWith;

/** Places that end with their test, which must leave nothing. */
@ExtendWith(NoLeaks.class)
abstract class SuiteTest {
    private final Deque<AutoCloseable> open = new ArrayDeque<>();

    final <T extends AutoCloseable> T closing(T resource) {
        open.push(resource);
        return resource;
    }

    final Place place(Map<?, ?>... replies) {
        return closing(Place.of(replies));
    }

    final Place looping(Map<?, ?>... replies) {
        return closing(Place.looping(replies));
    }

    @AfterEach
    void closeAll() throws Exception {
        // A test that ended by interruption must still clean up.
        Thread.interrupted();
        while (!open.isEmpty()) {
            open.pop().close();
        }
    }

    /** Opens a session whose hub is {@link FakeHub} in a role. */
    final Session fake(String role) {
        return fakeManager(role).createSession(SessionOptions.builder().id("fake").build());
    }

    final AgentManager fakeManager(String role) {
        return closing(AgentManager.open(fakeOptions(role).build()));
    }

    final AgentOptions.Builder fakeOptions(String role) {
        return AgentOptions.builder().binaryPath(FakeHub.program()).env("QWEN_FAKE_HUB", role);
    }

    static List<Message> collect(Turn turn) {
        List<Message> all = new ArrayList<>();
        try (turn) {
            turn.forEach(all::add);
        }
        return all;
    }

    static <T extends Message> List<T> only(List<Message> messages, Class<T> type) {
        return messages.stream().filter(type::isInstance).map(type::cast).toList();
    }

    static <T> T last(List<T> items) {
        return items.get(items.size() - 1);
    }

    static Result result(List<Message> messages) {
        return (Result) last(messages);
    }

    static String joined(List<Message> messages) {
        StringBuilder joined = new StringBuilder();
        only(messages, Message.Text.class).forEach(piece -> joined.append(piece.text()));
        return joined.toString();
    }
}
