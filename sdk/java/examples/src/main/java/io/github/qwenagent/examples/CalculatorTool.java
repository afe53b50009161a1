package io.github.qwenagent.examples;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.Description;
import io.github.qwenagent.Result;
import io.github.qwenagent.Tool;
import io.github.qwenagent.ToolCall;
import io.github.qwenagent.ToolException;
import io.github.qwenagent.ToolServer;

/** Makes functions of this program tools of the agent. */
public final class CalculatorTool {
    private CalculatorTool() {}

    /**
     * The arguments of both tools.
     *
     * @param a the first number
     * @param b the second number
     */
    record Operands(@Description("The first number") double a, @Description("The second number") double b) {}

    private static double divide(Operands operands) throws ToolException {
        if (operands.b() == 0) {
            throw new ToolException("A number cannot be divided by zero.");
        }
        return operands.a() / operands.b();
    }

    /** Runs the example. */
    public static void main(String[] arguments) {
        ToolServer calculator = ToolServer.of("calculator", Tool.of("add", "Adds two numbers", Operands.class, o -> o.a() + o.b()),
                Tool.of("divide", "Divides two numbers", Operands.class, CalculatorTool::divide));
        AgentOptions options = AgentOptions.builder().tools(calculator).allowedTools("mcp__calculator__add", "mcp__calculator__divide").build();
        try (AgentManager agents = AgentManager.open(options)) {
            Result result = agents.run("What is (20 + 22) / 2? Use the calculator.");
            for (ToolCall call : result.toolCalls()) {
                System.out.println(call.name() + " " + call.arguments());
            }
            System.out.println(result.text());
        }
    }
}
