package io.github.qwenagent.suite;

import static io.github.qwenagent.suite.Place.sayAbout;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.QwenException;
import io.github.qwenagent.Result;
import io.github.qwenagent.Session;
import io.github.qwenagent.Status;
import io.github.qwenagent.Turn;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

class InterleavingsTest extends SuiteTest {
    private static final int PROMPTS = 4;
    private static final int SCHEDULES = 200;

    @Test
    void everyResultBelongsToItsPromptAndNothingRunsAfterClose() {
        Map<?, ?>[] replies = new Map<?, ?>[PROMPTS];
        for (int i = 0; i < PROMPTS; i++) {
            replies[i] = sayAbout("prompt " + i + ".", "answer " + i);
        }
        Place place = looping(replies);
        AgentManager manager = place.manager();
        for (int seed = 0; seed < SCHEDULES; seed++) {
            runSchedule(manager.createSession(), new Random(seed), seed);
        }
        String asked = place.control("GET", "requests");
        assertFalse(asked.contains("prompt 9."), "a prompt reached the model after close");
    }

    /** Sends prompts in several ways, and cancels, interrupts, asks and closes in between. */
    private static void runSchedule(Session session, Random random, int seed) {
        Map<Integer, CompletableFuture<Result>> futures = new LinkedHashMap<>();
        Map<Integer, Turn> turns = new LinkedHashMap<>();
        List<Integer> cancelled = new ArrayList<>();
        boolean hasInterrupted = false;
        for (int i = 0; i < PROMPTS; i++) {
            String prompt = "prompt " + i + ".";
            if (random.nextBoolean()) {
                futures.put(i, session.runAsync(prompt));
            } else {
                turns.put(i, session.stream(prompt));
            }
            switch (random.nextInt(6)) {
                case 0 -> {
                    int victim = random.nextInt(i + 1);
                    cancelled.add(victim);
                    if (futures.containsKey(victim)) {
                        futures.get(victim).cancel(true);
                    } else {
                        turns.get(victim).close();
                    }
                }
                case 1 -> {
                    session.interrupt();
                    hasInterrupted = true;
                }
                case 2 -> session.setModel(null);
                default -> { }
            }
        }
        for (Map.Entry<Integer, CompletableFuture<Result>> each : futures.entrySet()) {
            check(each.getKey(), each.getValue()::join, cancelled, hasInterrupted, seed);
        }
        for (Map.Entry<Integer, Turn> each : turns.entrySet()) {
            check(each.getKey(), each.getValue()::result, cancelled, hasInterrupted, seed);
        }
        session.close();
        assertThrows(QwenException.Closed.class, () -> session.run("prompt 9."));
    }

    private static void check(int prompt, Supplier<Result> end, List<Integer> cancelled, boolean hasInterrupted, int seed) {
        try {
            assertEquals("answer " + prompt, end.get().text(), "schedule " + seed);
        } catch (CancellationException | QwenException.Closed e) {
            assertTrue(cancelled.contains(prompt), "schedule " + seed + " prompt " + prompt + ": " + e);
        } catch (CompletionException e) {
            checkFailure((QwenException) e.getCause(), hasInterrupted, seed);
        } catch (QwenException e) {
            checkFailure(e, hasInterrupted, seed);
        }
    }

    private static void checkFailure(QwenException e, boolean hasInterrupted, int seed) {
        assertTrue(hasInterrupted && e instanceof QwenException.TurnFailed failed
                && failed.result().map(Result::status).orElse(Status.CANCELLED) == Status.CANCELLED, "schedule " + seed + ": " + e);
    }
}
