package io.github.qwenagent.examples;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.Session;

/** Continues a session later and tries two ways from the same point. */
public final class ResumeAndFork {
    private ResumeAndFork() {}

    /** Runs the example. */
    public static void main(String[] arguments) {
        try (AgentManager agents = AgentManager.open()) {
            String id;
            try (Session first = agents.createSession()) {
                first.run("Remember the number 42.");
                id = first.id();
            }
            try (Session resumed = agents.resumeSession(id)) {
                System.out.println("resumed: " + resumed.run("Which number?").text());
                try (Session fork = resumed.fork()) {
                    System.out.println("forked: " + fork.run("Forget it; take 43.").text() + " " + !fork.id().equals(resumed.id()));
                }
            }
        }
    }
}
