package io.github.qwenagent.examples;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.Message;
import io.github.qwenagent.Result;
import io.github.qwenagent.Session;
import io.github.qwenagent.Turn;

/** Runs one prompt and prints the answer as it comes. */
public final class QuickStart {
    private QuickStart() {}

    /** Runs the example. */
    public static void main(String[] arguments) {
        try (AgentManager agents = AgentManager.open();
                Session session = agents.createSession();
                Turn turn = session.stream("Look around and tell me what this project is.")) {
            for (Message message : turn) {
                if (message instanceof Message.Text piece) {
                    System.out.print(piece.text());
                } else if (message instanceof Result result) {
                    System.out.printf("%n%s after %d ms, %d tokens%n", result.status(), result.duration().toMillis(), result.usage().totalTokens());
                }
            }
        }
    }
}
