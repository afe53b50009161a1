package io.github.qwenagent.suite;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.Message;
import io.github.qwenagent.Session;
import io.github.qwenagent.Turn;
import java.nio.file.Path;

/** A program that uses the SDK: it starts a turn that does not end, prints the hub's process id, and ends as it is asked to. */
final class Host {
    private Host() {}

    /** Runs the program. */
    public static void main(String[] arguments) {
        AgentManager manager = AgentManager.open(AgentOptions.builder().cwd(Path.of(arguments[1])).build());
        Session session = manager.createSession();
        Turn turn = session.stream("Work.");
        for (Message message : turn) {
            if (message instanceof Message.Text) {
                System.out.println(manager.pid());
                if (arguments[0].equals("exit")) {
                    System.exit(0);
                }
                if (arguments[0].equals("return")) {
                    return;
                }
            }
        }
    }
}
