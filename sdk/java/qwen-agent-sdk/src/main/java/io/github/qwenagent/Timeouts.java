package io.github.qwenagent;

import java.time.Duration;

/**
 * Time-outs, which are named in the exceptions that they cause.
 *
 * @param start until the hub has announced itself; 10 s
 * @param request until a request such as {@link Session#setModel} is answered; 60 s
 * @param callback until a permission callback or a hook has answered, after which the answer is no; 60 s
 * @param tool until a tool of this process has answered; 10 min
 * @param close until {@link Session#close} or {@link AgentManager#close} returns, the forced end included; 5 s
 */
public record Timeouts(Duration start, Duration request, Duration callback, Duration tool, Duration close) {
    /**
     * Returns the standard time-outs.
     *
     * @return the time-outs
     */
    public static Timeouts defaults() {
        Duration minute = Duration.ofMinutes(1);
        return new Timeouts(Duration.ofSeconds(10), minute, minute, Duration.ofMinutes(10), Duration.ofSeconds(5));
    }

    /**
     * Returns a copy with another value: until the hub has announced itself; 10 s.
     *
     * @param value until the hub has announced itself; 10 s
     * @return the copy
     */
    public Timeouts withStart(Duration value) {
        return new Timeouts(value, request, callback, tool, close);
    }

    /**
     * Returns a copy with another value: until a request such as {@link Session#setModel} is answered; 60 s.
     *
     * @param value until a request such as {@link Session#setModel} is answered; 60 s
     * @return the copy
     */
    public Timeouts withRequest(Duration value) {
        return new Timeouts(start, value, callback, tool, close);
    }

    /**
     * Returns a copy with another value: until a permission callback or a hook has answered, after which the answer is no; 60 s.
     *
     * @param value until a permission callback or a hook has answered, after which the answer is no; 60 s
     * @return the copy
     */
    public Timeouts withCallback(Duration value) {
        return new Timeouts(start, request, value, tool, close);
    }

    /**
     * Returns a copy with another value: until a tool of this process has answered; 10 min.
     *
     * @param value until a tool of this process has answered; 10 min
     * @return the copy
     */
    public Timeouts withTool(Duration value) {
        return new Timeouts(start, request, callback, value, close);
    }

    /**
     * Returns a copy with another value: until {@link Session#close} or {@link AgentManager#close} returns, the forced end included; 5 s.
     *
     * @param value until {@link Session#close} or {@link AgentManager#close} returns, the forced end included; 5 s
     * @return the copy
     */
    public Timeouts withClose(Duration value) {
        return new Timeouts(start, request, callback, tool, value);
    }
}
