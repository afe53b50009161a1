package io.github.qwenagent;

import io.github.qwenagent.internal.hub.Envelope;
import io.github.qwenagent.internal.json.Fields;
import io.github.qwenagent.internal.json.JsonException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Turns the lines of one turn into messages. It never fails: what it cannot read is {@link Message.Unknown}. */
final class TurnReader {
    /** Bounds the memory that a wrong index of a call can cost. */
    private static final int MAX_CALL_GAP = 128;

    /** A tool call whose pieces are still coming. */
    private static final class PartialCall {
        private String id = "";
        private String name = "";
        private final StringBuilder arguments = new StringBuilder();
    }

    private final StringBuilder text = new StringBuilder();
    /** The text of the last message that has any: a turn that was stopped ends with an empty message. */
    private String lastText = "";
    private boolean hasMessage;
    private List<PartialCall> partial = new ArrayList<>();
    private final List<ToolCall> calls = new ArrayList<>();

    /** Reads a line that carries nothing but text. */
    Message.Text piece(Message.Meta meta, String piece) {
        hasMessage = true;
        text.append(piece);
        return new Message.Text(meta, piece);
    }

    /** Returns the messages of a line, the result last if the line ends the turn. */
    List<Message> read(Message.Meta meta, Envelope envelope) {
        Fields fields = envelope.fields();
        if (fields == null) {
            return List.of(new Message.Unknown(meta, true));
        }
        try {
            return read(meta, envelope.kind(), fields);
        } catch (JsonException e) {
            return List.of(new Message.Unknown(meta, false));
        }
    }

    private List<Message> read(Message.Meta meta, String kind, Fields fields) throws JsonException {
        switch (kind) {
            case Wire.CHAT_COMPLETION, Wire.CHAT_COMPLETION_CHUNK:
                return completion(meta, fields);
            case Wire.X_QWEN_THOUGHT:
                Wire.ThoughtRecord thought = Wire.ThoughtRecord.read(fields);
                return List.of(new Message.Thought(meta, or(thought.subject()), or(thought.description()), or(thought.parentToolCallId())));
            case Wire.X_QWEN_TOOL_DISPLAY:
                Wire.ToolDisplayRecord tool = Wire.ToolDisplayRecord.read(fields);
                return List.of(new Message.ToolStatus(meta, or(tool.toolCallId()), or(tool.toolName()), or(tool.status()),
                        tool.resultDisplay(), tool.confirmation(), or(tool.parentToolCallId())));
            case Wire.X_QWEN_TERMINAL:
                Wire.TerminalRecord output = Wire.TerminalRecord.read(fields);
                return List.of(new Message.Terminal(meta, or(output.channel()), or(output.source()), or(output.text()),
                        or(output.toolCallId()), output.exitCode()));
            case Wire.X_QWEN_SESSION_EVENT:
                Wire.SessionEventRecord event = Wire.SessionEventRecord.read(fields);
                return List.of(new Message.SessionEvent(meta, or(event.event()), or(event.message()), event.metrics(), event.value()));
            case Wire.RESULT_COMMAND:
                return command(meta, Wire.CommandLine.read(fields));
            case Wire.RESULT_HEARTBEAT, Wire.RESULT_CANCEL, Wire.RESULT_COMMAND_HINT, Wire.CONTROL_REQUEST, Wire.CONTROL_RESPONSE,
                    Wire.CONTROL_CANCEL_REQUEST:
                // The control channel is not a part of the conversation.
                return List.of();
            case "":
                return plain(meta, fields);
            default:
                return List.of(new Message.Unknown(meta, false));
        }
    }

    private static String or(@Nullable String text) {
        return text == null ? "" : text;
    }

    /** Reads a line without a kind. */
    private List<Message> plain(Message.Meta meta, Fields fields) throws JsonException {
        if (!fields.list("choices").isEmpty()) {
            return completion(meta, fields);
        }
        Fields error = fields.optional("error");
        if (error == null || error.text("message").isEmpty()) {
            return List.of(new Message.Unknown(meta, false));
        }
        return List.of(notice(meta, error));
    }

    private static Message.Notice notice(Message.Meta meta, Fields error) {
        return new Message.Notice(meta, error.text("code"), error.text("type"), error.text("message"));
    }

    private List<Message> completion(Message.Meta meta, Fields fields) throws JsonException {
        List<Message> messages = new ArrayList<>(3);
        Fields metadata = fields.object("metadata");
        Fields turn = metadata == null ? null : metadata.object("turn");
        Fields error = metadata == null ? null : metadata.object("error");
        Fields usage = fields.object("usage");
        List<Fields> choices = Fields.or(fields.objects("choices", each -> each), List.of());
        if (!choices.isEmpty()) {
            Fields choice = choices.get(0);
            Wire.Delta delta = choice.object("delta", Wire.Delta::read);
            Wire.AssistantMessage whole = delta == null ? choice.object("message", Wire.AssistantMessage::read) : null;
            if (delta != null) {
                readDelta(messages, meta, delta);
            } else if (whole != null) {
                readWhole(messages, meta, whole);
            }
            String reason = or(choice.string("finish_reason"));
            if (!reason.isEmpty() && (turn != null || error == null)) {
                finish(messages, meta, reason, fields.text("model"), turn == null ? usage : null);
            }
        }
        if (metadata != null && turn != null) {
            messages.add(Result.read(meta, text.isEmpty() ? lastText : text.toString(), calls, usage, metadata, turn));
        } else if (error != null) {
            messages.add(notice(meta, error));
        }
        return messages;
    }

    private void readDelta(List<Message> messages, Message.Meta meta, Wire.Delta delta) {
        if (delta.role() != null) {
            begin();
        }
        String content = or(delta.content());
        if (!content.isEmpty()) {
            messages.add(piece(meta, content));
        }
        for (Wire.ToolCallDelta call : Fields.or(delta.toolCalls(), List.<Wire.ToolCallDelta>of())) {
            readCall(messages, meta, call);
        }
    }

    private void readCall(List<Message> messages, Message.Meta meta, Wire.ToolCallDelta call) {
        hasMessage = true;
        if (call.index() < 0 || call.index() > partial.size() + MAX_CALL_GAP) {
            return;
        }
        int index = (int) call.index();
        while (partial.size() <= index) {
            partial.add(new PartialCall());
        }
        PartialCall known = partial.get(index);
        String id = or(call.id());
        Wire.FunctionDelta function = call.function();
        String name = function == null ? "" : or(function.name());
        String arguments = function == null ? "" : or(function.arguments());
        known.id = id.isEmpty() ? known.id : id;
        known.name = name.isEmpty() ? known.name : name;
        known.arguments.append(arguments);
        messages.add(new Message.ToolCallDelta(meta, index, id, name, arguments));
    }

    private void readWhole(List<Message> messages, Message.Meta meta, Wire.AssistantMessage message) {
        begin();
        String content = or(message.content());
        if (!content.isEmpty()) {
            messages.add(piece(meta, content));
        }
        for (Wire.WireToolCall call : Fields.or(message.toolCalls(), List.<Wire.WireToolCall>of())) {
            hasMessage = true;
            PartialCall complete = new PartialCall();
            complete.id = or(call.id());
            complete.name = or(call.function().name());
            complete.arguments.append(or(call.function().arguments()));
            partial.add(complete);
        }
    }

    private void begin() {
        text.setLength(0);
        hasMessage = false;
        partial = new ArrayList<>();
    }

    /** Ends the message that was read so far. */
    private void finish(List<Message> messages, Message.Meta meta, String reason, String model, @Nullable Fields usage) {
        if (!hasMessage) {
            return;
        }
        hasMessage = false;
        String said = text.toString();
        if (!said.isEmpty()) {
            lastText = said;
        }
        List<ToolCall> made = new ArrayList<>(partial.size());
        for (PartialCall call : partial) {
            if (!call.name.isEmpty() || !call.id.isEmpty()) {
                String arguments = call.arguments.toString();
                made.add(new ToolCall(call.id, call.name, parseArguments(arguments), arguments));
            }
        }
        partial = new ArrayList<>();
        calls.addAll(made);
        messages.add(new Message.Assistant(meta, said, List.copyOf(made), reason, model, Usage.ofTokens(usage, 0, null)));
    }

    private static Json parseArguments(String text) {
        try {
            Json parsed = Json.parse(text);
            return parsed.value() instanceof Map ? parsed : Json.of(Map.of());
        } catch (IllegalArgumentException e) {
            return Json.of(Map.of());
        }
    }

    /** Reads the outcome of a slash command. It ends the turn unless it submits a prompt. */
    private static List<Message> command(Message.Meta meta, Wire.CommandLine line) {
        Wire.CommandOutcome outcome = line.result();
        Message command = new Message.Command(meta, line.command().path(), or(line.command().args()), outcome);
        if (outcome.type().equals("submit_prompt")) {
            return List.of(command);
        }
        String content = or(outcome.content());
        boolean isError = "error".equals(outcome.level());
        Result.Failure error = isError ? new Result.Failure("command_failed", "", content, false, Duration.ZERO) : null;
        return List.of(command, new Result(meta, content, isError ? Status.ERROR : Status.DONE, error, Usage.NONE, Map.of(), Map.of(), List.of(),
                List.of(), null, Duration.ZERO));
    }
}
