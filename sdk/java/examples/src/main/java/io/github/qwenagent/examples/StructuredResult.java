package io.github.qwenagent.examples;

import io.github.qwenagent.AgentManager;
import io.github.qwenagent.AgentOptions;
import io.github.qwenagent.Description;
import io.github.qwenagent.Named;
import io.github.qwenagent.PermissionMode;
import io.github.qwenagent.QwenException;
import io.github.qwenagent.Typed;
import java.util.List;
import java.util.OptionalInt;

/** Asks for an answer that is a record. */
public final class StructuredResult {
    private StructuredResult() {}

    /** The decision. */
    enum Verdict {
        @Named("approve")
        APPROVE,
        @Named("reject")
        REJECT
    }

    /**
     * The answer.
     *
     * @param verdict the decision
     * @param issues what should change
     * @param score how good it is
     */
    record Review(Verdict verdict, @Description("What should change") List<String> issues, OptionalInt score) {}

    /** Runs the example. */
    public static void main(String[] arguments) {
        AgentOptions options = AgentOptions.builder().permissionMode(PermissionMode.PLAN).build();
        try (AgentManager agents = AgentManager.open(options)) {
            Typed<Review> typed = agents.run("Review the last commit.", Review.class);
            System.out.println(typed.output().verdict() + ": " + typed.output().issues() + " (" + typed.result().usage().totalTokens() + " tokens)");
        } catch (QwenException.StructuredOutput e) {
            System.err.println("no review: " + e.getMessage());
        }
    }
}
