package io.github.qwenagent.examples;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.OnCrash;
import io.github.qwenagent.Pool;
import io.github.qwenagent.QwenException;
import io.github.qwenagent.Result;
import java.util.ArrayList;
import java.util.List;

/** Runs many sessions on few workers. */
public final class WorkerPool {
    private WorkerPool() {}

    /** Runs the example. */
    public static void main(String[] arguments) throws InterruptedException {
        AgentOptions options = AgentOptions.builder().pool(Pool.ofMax(2)).onCrash(OnCrash.RETRY).build();
        try (AgentManager agents = AgentManager.open(options)) {
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
                String prompt = "Summarize part " + i + ".";
                Thread thread = new Thread(() -> System.out.println(prompt + " " + runPatiently(agents, prompt).text()));
                threads.add(thread);
                thread.start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
    }

    /** Tries again while the pool is overloaded. */
    private static Result runPatiently(AgentManager agents, String prompt) {
        while (true) {
            try {
                return agents.run(prompt);
            } catch (QwenException.Overloaded e) {
                try {
                    Thread.sleep(e.retryAfter().toMillis());
                } catch (InterruptedException interruption) {
                    Thread.currentThread().interrupt();
                    throw e;
                }
            }
        }
    }
}
