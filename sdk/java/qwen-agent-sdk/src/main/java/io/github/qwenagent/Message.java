package io.github.qwenagent;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A step of a turn. A worker that is newer than this SDK may send others, which arrive as {@link Unknown}, so a switch over
 * the subclasses needs no other default.
 */
public sealed interface Message permits Message.Text, Message.Assistant, Message.ToolCallDelta, Message.Thought,
        Message.ToolStatus, Message.Terminal, Message.SessionEvent, Message.Command, Message.Notice, Message.Unknown, Result {
    /**
     * Returns where the message comes from.
     *
     * @return its session, prompt, number and line
     */
    Meta meta();

    /** What all messages have. */
    final class Meta {
        private final String sessionId;
        private final String promptId;
        private final long seq;
        private final byte[] line;

        Meta(String sessionId, String promptId, long seq, byte[] line) {
            this.sessionId = sessionId;
            this.promptId = promptId;
            this.seq = seq;
            this.line = line;
        }

        /**
         * Returns the session's id.
         *
         * @return the id
         */
        public String sessionId() {
            return sessionId;
        }

        /**
         * Returns the id of the turn's prompt.
         *
         * @return the id; empty for a message of no turn
         */
        public String promptId() {
            return promptId;
        }

        /**
         * Returns the number of the message's line in its session, for {@link Session#attach}.
         *
         * @return the number; 0 if lines are not numbered
         */
        public long seq() {
            return seq;
        }

        /**
         * Returns the line as the worker wrote it, unknown fields included. {@link Json#parse} reads it.
         *
         * @return the line without its end
         */
        public String raw() {
            return new String(line, StandardCharsets.UTF_8);
        }

        int size() {
            return line.length;
        }

        @Override
        public String toString() {
            return raw();
        }
    }

    /**
     * A piece of the answer, as the model writes it.
     *
     * @param meta where the message comes from
     * @param text the piece
     */
    record Text(Meta meta, String text) implements Message {}

    /**
     * A whole message of the model. It follows the pieces that it consists of; the last one of a turn precedes the result.
     *
     * @param meta where the message comes from
     * @param text the text
     * @param toolCalls the calls that the model made
     * @param finishReason `stop`, `tool_calls`, `length` or `content_filter`
     * @param model the model that wrote it
     * @param usage what this message used; nothing for the last message of a turn, whose result counts the whole turn
     */
    record Assistant(Meta meta, String text, List<ToolCall> toolCalls, String finishReason, String model, Usage usage)
            implements Message {}

    /**
     * A piece of a tool call, as the model writes it.
     *
     * @param meta where the message comes from
     * @param index distinguishes the calls of one message
     * @param id the call's id, in its first piece
     * @param name the tool's name, in the first piece of the call
     * @param argumentsText a piece of the arguments
     */
    record ToolCallDelta(Meta meta, int index, String id, String name, String argumentsText) implements Message {}

    /**
     * A part of the model's thinking.
     *
     * @param meta where the message comes from
     * @param subject a headline
     * @param description the thought
     * @param parentToolCallId the call that started the sub-agent which thinks; empty for the main agent
     */
    record Thought(Meta meta, String subject, String description, String parentToolCallId) implements Message {}

    /**
     * The progress of a tool call.
     *
     * @param meta where the message comes from
     * @param toolCallId the call's id
     * @param toolName the tool's name
     * @param status `pending`, `confirming`, `executing`, `success`, `error` or `canceled`
     * @param display what users can be shown of the call's outcome; null if there is none yet
     * @param confirmation what a user is asked to approve; null if there is no question
     * @param parentToolCallId the call that started the sub-agent; empty for the main agent
     */
    record ToolStatus(Meta meta, String toolCallId, String toolName, String status, Wire.@Nullable ResultDisplay display,
            Wire.@Nullable ConfirmationRecord confirmation, String parentToolCallId) implements Message {}

    /**
     * Output of a tool or of the console.
     *
     * @param meta where the message comes from
     * @param channel `stdout` or `stderr`
     * @param source what wrote it, such as `tool`
     * @param text the output without escape sequences
     * @param toolCallId the call that wrote it
     * @param exitCode the exit code at the end of a run, otherwise null
     */
    record Terminal(Meta meta, String channel, String source, String text, String toolCallId, @Nullable Long exitCode)
            implements Message {}

    /**
     * Something about the session, such as `Steered`, `Retry` or `ChatCompressed`.
     *
     * @param meta where the message comes from
     * @param event the name of the event
     * @param message a text for users
     * @param metrics figures, or null
     * @param value further data, or null
     */
    record SessionEvent(Meta meta, String event, String message, Wire.@Nullable Metrics metrics, @Nullable Json value)
            implements Message {}

    /**
     * The outcome of a slash command.
     *
     * @param meta where the message comes from
     * @param path the command's name and the names of its subcommands
     * @param arguments the rest as typed
     * @param outcome the message, the dialog, the tool or the prompt that came of it
     */
    record Command(Meta meta, List<String> path, String arguments, Wire.CommandOutcome outcome) implements Message {}

    /**
     * An error that does not end the turn, such as an answer that the worker ignored.
     *
     * @param meta where the message comes from
     * @param code a stable error code, or an empty text
     * @param type the class of the error
     * @param message what happened
     */
    record Notice(Meta meta, String code, String type, String message) implements Message {}

    /**
     * A line that this SDK cannot read; {@link Meta#raw} has it as it came.
     *
     * @param meta where the message comes from
     * @param isMalformed true for a line that is not a JSON object, false for one of an unknown type
     */
    record Unknown(Meta meta, boolean isMalformed) implements Message {}
}
