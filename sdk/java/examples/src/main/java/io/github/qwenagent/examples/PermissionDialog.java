package io.github.qwenagent.examples;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.Decision;
import io.github.qwenagent.PermissionRequest;
import io.github.qwenagent.Result;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/** Asks the user before a tool runs. */
public final class PermissionDialog {
    private static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    private PermissionDialog() {}

    /** Runs the example. */
    public static void main(String[] arguments) {
        AgentOptions options = AgentOptions.builder().disallowedTools("Bash(rm *)").canUseTool(PermissionDialog::ask).build();
        try (AgentManager agents = AgentManager.open(options)) {
            Result result = agents.run("Create a file named hello.txt with a greeting.");
            System.out.println(result.text());
            for (Result.Denial denial : result.denials()) {
                System.out.println("refused: " + denial.toolName() + ": " + denial.reason());
            }
        }
    }

    private static Decision ask(PermissionRequest request) throws IOException {
        System.out.print(request.toolName() + " " + request.input() + "\nAllow it? [y/N/a = always] ");
        String answer = INPUT.readLine();
        if ("y".equals(answer)) {
            return Decision.allow();
        }
        return "a".equals(answer) ? Decision.allow().forRules(request.toolName()) : Decision.deny("The user does not want that.");
    }
}
