package io.github.qwenagent;

import io.github.qwenagent.internal.json.Fields;
import io.github.qwenagent.internal.json.JsonException;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The lines of the `qwen` dialect that a worker writes, and their parts. Generated from schemas/ by sdk/codegen/java.py; do
 * not edit. {@link Json#as} reads them from the raw line of a message; unknown fields are in the raw line only.
 */
public final class Wire {
    private static final Fields NO_FIELDS = Fields.empty();

    private Wire() {}

    static final String CHAT_COMPLETION = "chat.completion";
    static final String CHAT_COMPLETION_CHUNK = "chat.completion.chunk";
    static final String CONTROL_CANCEL_REQUEST = "control_cancel_request";
    static final String CONTROL_REQUEST = "control_request";
    static final String CONTROL_RESPONSE = "control_response";
    static final String RESULT_CANCEL = "result/cancel";
    static final String RESULT_COMMAND = "result/command";
    static final String RESULT_COMMAND_HINT = "result/command_hint";
    static final String RESULT_HEARTBEAT = "result/heartbeat";
    static final String X_QWEN_SESSION_EVENT = "x-qwen-session-event";
    static final String X_QWEN_TERMINAL = "x-qwen-terminal";
    static final String X_QWEN_THOUGHT = "x-qwen-thought";
    static final String X_QWEN_TOOL_DISPLAY = "x-qwen-tool-display";

    /**
     * What the runs of one sub-agent spent, without the sub-agents that it started.
     *
     * @param cachedTokens The part of the prompt tokens served from the provider's cache.
     * @param completionTokens The number of output tokens.
     * @param costUsd The cost in US dollars; absent if the model's prices are unknown.
     * @param modelCalls The number of model calls.
     * @param promptTokens The number of input tokens.
     * @param reasoningTokens The part of the completion tokens spent on thinking.
     * @param runs How often it was started.
     * @param toolCalls The number of tool calls.
     * @param totalTokens The sum of both.
     */
    public record AgentTokens(
            @Named("cached_tokens") @Nullable Long cachedTokens,
            @Named("completion_tokens") long completionTokens,
            @Named("cost_usd") @Nullable Double costUsd,
            @Named("model_calls") long modelCalls,
            @Named("prompt_tokens") long promptTokens,
            @Named("reasoning_tokens") @Nullable Long reasoningTokens,
            long runs,
            @Named("tool_calls") long toolCalls,
            @Named("total_tokens") long totalTokens) {
        static AgentTokens read(Fields fields) throws JsonException {
            return new AgentTokens(
                    fields.integer("cached_tokens"),
                    Fields.or(fields.integer("completion_tokens"), 0L),
                    fields.number("cost_usd"),
                    Fields.or(fields.integer("model_calls"), 0L),
                    Fields.or(fields.integer("prompt_tokens"), 0L),
                    fields.integer("reasoning_tokens"),
                    Fields.or(fields.integer("runs"), 0L),
                    Fields.or(fields.integer("tool_calls"), 0L),
                    Fields.or(fields.integer("total_tokens"), 0L));
        }
    }

    /**
     * An escape sequence that was removed.
     *
     * @param code The escape sequence that was removed.
     * @param offset Its position in the record's text, in Unicode scalar values.
     */
    public record AnsiCode(
            String code,
            long offset) {
        static AnsiCode read(Fields fields) throws JsonException {
            return new AnsiCode(
                    Fields.or(fields.string("code"), ""),
                    Fields.or(fields.integer("offset"), 0L));
        }
    }

    /**
     * A message of the model.
     *
     * @param content The text; absent if the message has only tool calls.
     * @param role `assistant`
     * @param toolCalls The tool calls of the message.
     */
    public record AssistantMessage(
            @Nullable String content,
            String role,
            @Named("tool_calls") @Nullable List<WireToolCall> toolCalls) {
        static AssistantMessage read(Fields fields) throws JsonException {
            return new AssistantMessage(
                    fields.string("content"),
                    Fields.or(fields.string("role"), ""),
                    fields.objects("tool_calls", WireToolCall::read));
        }
    }

    /**
     * The result of a cancel request.
     *
     * @param message A message for users about what was cancelled.
     * @param promptId The id of the turn or queued prompt that the request named.
     * @param reason The `reason` of the request.
     * @param sessionId The id of the session.
     * @param status `ok`, or `noop` if there was nothing to cancel.
     * @param type `result/cancel`
     */
    public record CancelLine(
            @Nullable String message,
            @Named("prompt_id") @Nullable String promptId,
            @Nullable String reason,
            @Named("session_id") @Nullable String sessionId,
            String status,
            String type) {
        static CancelLine read(Fields fields) throws JsonException {
            return new CancelLine(
                    fields.string("message"),
                    fields.string("prompt_id"),
                    fields.string("reason"),
                    fields.string("session_id"),
                    Fields.or(fields.string("status"), ""),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * A `chat.completion` line: the handshake, an assistant message, an error, or the terminal record of a turn.
     *
     * @param choices One message; none in the handshake.
     * @param created Seconds since the Unix epoch.
     * @param id `chatcmpl-&lt;session_id&gt;`
     * @param metadata The handshake's announcement, an error, or the summary of a turn.
     * @param model The model that wrote, or that the session starts with.
     * @param object `chat.completion`
     * @param promptId The id of the turn's prompt; absent outside a turn.
     * @param sessionId The id of the session.
     * @param systemFingerprint The program that wrote the stream; only in the handshake.
     * @param usage Tokens: of the message, or in the terminal record of the whole turn.
     */
    public record ChatCompletion(
            List<Choice> choices,
            long created,
            String id,
            @Nullable Metadata metadata,
            String model,
            String object,
            @Named("prompt_id") @Nullable String promptId,
            @Named("session_id") @Nullable String sessionId,
            @Named("system_fingerprint") @Nullable String systemFingerprint,
            @Nullable TokenUsage usage) {
        static ChatCompletion read(Fields fields) throws JsonException {
            return new ChatCompletion(
                    Fields.or(fields.objects("choices", Choice::read), List.of()),
                    Fields.or(fields.integer("created"), 0L),
                    Fields.or(fields.string("id"), ""),
                    fields.object("metadata", Metadata::read),
                    Fields.or(fields.string("model"), ""),
                    Fields.or(fields.string("object"), ""),
                    fields.string("prompt_id"),
                    fields.string("session_id"),
                    fields.string("system_fingerprint"),
                    fields.object("usage", TokenUsage::read));
        }
    }

    /**
     * A `chat.completion.chunk` line.
     *
     * @param choices One piece; none in the handshake.
     * @param created Seconds since the Unix epoch.
     * @param id `chatcmpl-&lt;session_id&gt;`
     * @param metadata The handshake's announcement, an error, or the summary of a turn.
     * @param model The model that writes.
     * @param object `chat.completion.chunk`
     * @param promptId The id of the turn's prompt; absent outside a turn.
     * @param sessionId The id of the session.
     * @param systemFingerprint The program that wrote the stream; only in the handshake.
     * @param usage Tokens: of the message in its last chunk, of the whole turn in the turn's last chunk.
     */
    public record ChatCompletionChunk(
            List<ChunkChoice> choices,
            @Nullable Long created,
            @Nullable String id,
            @Nullable Metadata metadata,
            @Nullable String model,
            @Nullable String object,
            @Named("prompt_id") @Nullable String promptId,
            @Named("session_id") @Nullable String sessionId,
            @Named("system_fingerprint") @Nullable String systemFingerprint,
            @Nullable TokenUsage usage) {
        static ChatCompletionChunk read(Fields fields) throws JsonException {
            return new ChatCompletionChunk(
                    Fields.or(fields.objects("choices", ChunkChoice::read), List.of()),
                    fields.integer("created"),
                    fields.string("id"),
                    fields.object("metadata", Metadata::read),
                    fields.string("model"),
                    fields.string("object"),
                    fields.string("prompt_id"),
                    fields.string("session_id"),
                    fields.string("system_fingerprint"),
                    fields.object("usage", TokenUsage::read));
        }
    }

    /**
     * The one choice of a `chat.completion`.
     *
     * @param finishReason `stop`, `tool_calls`, `length`, `content_filter` or `error`.
     * @param index The index of the choice; always 0.
     * @param message The message that the line carries.
     */
    public record Choice(
            @Named("finish_reason") String finishReason,
            long index,
            AssistantMessage message) {
        static Choice read(Fields fields) throws JsonException {
            return new Choice(
                    Fields.or(fields.string("finish_reason"), ""),
                    Fields.or(fields.integer("index"), 0L),
                    Fields.or(fields.object("message", AssistantMessage::read), AssistantMessage.read(NO_FIELDS)));
        }
    }

    /**
     * The one choice of a chunk.
     *
     * @param delta The increment of the message.
     * @param finishReason Null until the message's last chunk.
     * @param index The index of the choice; always 0.
     */
    public record ChunkChoice(
            Delta delta,
            @Named("finish_reason") @Nullable String finishReason,
            @Nullable Long index) {
        static ChunkChoice read(Fields fields) throws JsonException {
            return new ChunkChoice(
                    Fields.or(fields.object("delta", Delta::read), Delta.read(NO_FIELDS)),
                    fields.string("finish_reason"),
                    fields.integer("index"));
        }
    }

    /**
     * The result of a slash command.
     *
     * @param command The command as it was parsed.
     * @param limitation Features that are unavailable because there is no control channel.
     * @param promptId The id of the prompt that contained the command.
     * @param result The outcome of the command.
     * @param sessionId The id of the session.
     * @param type `result/command`
     */
    public record CommandLine(
            CommandName command,
            @Nullable String limitation,
            @Named("prompt_id") String promptId,
            CommandOutcome result,
            @Named("session_id") String sessionId,
            String type) {
        static CommandLine read(Fields fields) throws JsonException {
            return new CommandLine(
                    Fields.or(fields.object("command", CommandName::read), CommandName.read(NO_FIELDS)),
                    fields.string("limitation"),
                    Fields.or(fields.string("prompt_id"), ""),
                    Fields.or(fields.object("result", CommandOutcome::read), CommandOutcome.read(NO_FIELDS)),
                    Fields.or(fields.string("session_id"), ""),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * A parsed command with its arguments.
     *
     * @param args The arguments as typed.
     * @param kind `slash`, `at` or `help`
     * @param path The command's name followed by the names of its subcommands.
     */
    public record CommandName(
            @Nullable String args,
            String kind,
            List<String> path) {
        static CommandName read(Fields fields) throws JsonException {
            return new CommandName(
                    fields.string("args"),
                    Fields.or(fields.string("kind"), ""),
                    Fields.or(fields.strings("path"), List.of()));
        }
    }

    /**
     * The outcome of a command.
     *
     * @param content The text of a message, or the submitted prompt.
     * @param data The content of the dialog.
     * @param dialog The name of the dialog.
     * @param level The level of a message: `info`, `warning` or `error`.
     * @param tool The tool that was run.
     * @param type `message`, `dialog`, `tool` or `submit_prompt`
     */
    public record CommandOutcome(
            @Nullable String content,
            @Nullable Json data,
            @Nullable String dialog,
            @Nullable String level,
            @Nullable ToolUse tool,
            String type) {
        static CommandOutcome read(Fields fields) throws JsonException {
            return new CommandOutcome(
                    fields.string("content"),
                    Json.orNull(fields.value("data")),
                    fields.string("dialog"),
                    fields.string("level"),
                    fields.object("tool", ToolUse::read),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * Details of the completion tokens.
     *
     * @param reasoningTokens Tokens spent on thinking.
     */
    public record CompletionTokens(
            @Named("reasoning_tokens") long reasoningTokens) {
        static CompletionTokens read(Fields fields) throws JsonException {
            return new CompletionTokens(
                    Fields.or(fields.integer("reasoning_tokens"), 0L));
        }
    }

    /**
     * The content of a permission request.
     *
     * @param command The command line.
     * @param diff The unified diff.
     * @param fileName The path as displayed to users.
     * @param filePath The absolute path of the file.
     * @param modified The text after the change.
     * @param original The text before the change; null for a new file.
     * @param plan The plan, in Markdown.
     * @param prompt A description of the call.
     * @param rootCommand The programs that the command starts.
     * @param serverName The name of the MCP server.
     * @param stat Line counts.
     * @param title A title.
     * @param toolDisplayName The display name of the tool.
     * @param toolName The name of the tool on its server.
     * @param type The kind, on which it depends which fields are set.
     * @param urls URLs that the call would fetch.
     */
    public record ConfirmationRecord(
            @Nullable String command,
            @Nullable String diff,
            @Named("file_name") @Nullable String fileName,
            @Named("file_path") @Nullable String filePath,
            @Nullable String modified,
            @Nullable String original,
            @Nullable String plan,
            @Nullable String prompt,
            @Named("root_command") @Nullable String rootCommand,
            @Named("server_name") @Nullable String serverName,
            @Nullable LineCounts stat,
            @Nullable String title,
            @Named("tool_display_name") @Nullable String toolDisplayName,
            @Named("tool_name") @Nullable String toolName,
            String type,
            @Nullable List<String> urls) {
        static ConfirmationRecord read(Fields fields) throws JsonException {
            return new ConfirmationRecord(
                    fields.string("command"),
                    fields.string("diff"),
                    fields.string("file_name"),
                    fields.string("file_path"),
                    fields.string("modified"),
                    fields.string("original"),
                    fields.string("plan"),
                    fields.string("prompt"),
                    fields.string("root_command"),
                    fields.string("server_name"),
                    fields.object("stat", LineCounts::read),
                    fields.string("title"),
                    fields.string("tool_display_name"),
                    fields.string("tool_name"),
                    Fields.or(fields.string("type"), ""),
                    fields.strings("urls"));
        }
    }

    /**
     * A result or an error.
     *
     * @param error The error, if the request failed.
     * @param result The content of the response.
     * @param subtype `success` or `error`
     */
    public record ControlAnswer(
            @Nullable ControlError error,
            @Nullable Json result,
            String subtype) {
        static ControlAnswer read(Fields fields) throws JsonException {
            return new ControlAnswer(
                    fields.object("error", ControlError::read),
                    Json.orNull(fields.value("result")),
                    Fields.or(fields.string("subtype"), ""));
        }
    }

    /**
     * A withdrawn control request.
     *
     * @param promptId The id of the running turn's prompt.
     * @param requestId The id of the control request, repeated in its response.
     * @param sessionId The id of the session.
     * @param type `control_cancel_request`
     */
    public record ControlCancelLine(
            @Named("prompt_id") @Nullable String promptId,
            @Named("request_id") String requestId,
            @Named("session_id") @Nullable String sessionId,
            String type) {
        static ControlCancelLine read(Fields fields) throws JsonException {
            return new ControlCancelLine(
                    fields.string("prompt_id"),
                    Fields.or(fields.string("request_id"), ""),
                    fields.string("session_id"),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * The error of a control request.
     *
     * @param code A stable identifier for programs.
     * @param message The error message for users.
     * @param retryable True if a retry may succeed.
     */
    public record ControlError(
            @Nullable String code,
            String message,
            @Nullable Boolean retryable) {
        static ControlError read(Fields fields) throws JsonException {
            return new ControlError(
                    fields.string("code"),
                    Fields.or(fields.string("message"), ""),
                    fields.bool("retryable"));
        }
    }

    /**
     * The reason for a permission request.
     *
     * @param agentId The id of the sub-agent that sent the request; absent for the main agent.
     * @param blockedPath The path outside the workspace that caused the request, if one did.
     * @param confirmation Information to display to the user.
     * @param reason The reason for the request.
     * @param toolCallId The id of the tool call.
     */
    public record ControlMetadata(
            @Named("agent_id") @Nullable String agentId,
            @Named("blocked_path") @Nullable String blockedPath,
            @Nullable ConfirmationRecord confirmation,
            String reason,
            @Named("tool_call_id") @Nullable String toolCallId) {
        static ControlMetadata read(Fields fields) throws JsonException {
            return new ControlMetadata(
                    fields.string("agent_id"),
                    fields.string("blocked_path"),
                    fields.object("confirmation", ConfirmationRecord::read),
                    Fields.or(fields.string("reason"), ""),
                    fields.string("tool_call_id"));
        }
    }

    /**
     * A control request to the host, in the flat form.
     *
     * @param callbackId `hook_callback`: the id under which the host registered the hook.
     * @param input `hook_callback`: the input of the hook.
     * @param message `mcp_message`: the JSON-RPC message.
     * @param metadata `can_use_tool`: the reason for the request and information to display.
     * @param promptId The id of the turn's prompt; absent outside a turn.
     * @param requestId The id of the control request, repeated in its response.
     * @param serverName `mcp_message`: the name of the server.
     * @param sessionId The id of the session.
     * @param subtype `can_use_tool`, `hook_callback` or `mcp_message`
     * @param tool `can_use_tool`: the arguments of the call.
     * @param toolUseId `hook_callback`: the id of the tool call that it concerns.
     * @param type `control_request`
     */
    public record ControlRequestLine(
            @Named("callback_id") @Nullable String callbackId,
            @Nullable Json input,
            @Nullable Json message,
            @Nullable ControlMetadata metadata,
            @Named("prompt_id") @Nullable String promptId,
            @Named("request_id") String requestId,
            @Named("server_name") @Nullable String serverName,
            @Named("session_id") String sessionId,
            String subtype,
            @Nullable ToolUse tool,
            @Named("tool_use_id") @Nullable String toolUseId,
            String type) {
        static ControlRequestLine read(Fields fields) throws JsonException {
            return new ControlRequestLine(
                    fields.string("callback_id"),
                    Json.orNull(fields.value("input")),
                    Json.orNull(fields.value("message")),
                    fields.object("metadata", ControlMetadata::read),
                    fields.string("prompt_id"),
                    Fields.or(fields.string("request_id"), ""),
                    fields.string("server_name"),
                    Fields.or(fields.string("session_id"), ""),
                    Fields.or(fields.string("subtype"), ""),
                    fields.object("tool", ToolUse::read),
                    fields.string("tool_use_id"),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * A response on the control channel, in the flat form.
     *
     * @param promptId The id of the running turn's prompt.
     * @param requestId The id of the control request, repeated in its response.
     * @param response The content of the response.
     * @param sessionId The id of the session.
     * @param type `control_response`
     */
    public record ControlResponseLine(
            @Named("prompt_id") @Nullable String promptId,
            @Named("request_id") String requestId,
            ControlAnswer response,
            @Named("session_id") @Nullable String sessionId,
            String type) {
        static ControlResponseLine read(Fields fields) throws JsonException {
            return new ControlResponseLine(
                    fields.string("prompt_id"),
                    Fields.or(fields.string("request_id"), ""),
                    Fields.or(fields.object("response", ControlAnswer::read), ControlAnswer.read(NO_FIELDS)),
                    fields.string("session_id"),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * The increment of a chunk.
     *
     * @param content The next piece of text.
     * @param role The role of the author; only in a message's first chunk.
     * @param toolCalls Increments of tool calls.
     */
    public record Delta(
            @Nullable String content,
            @Nullable String role,
            @Named("tool_calls") @Nullable List<ToolCallDelta> toolCalls) {
        static Delta read(Fields fields) throws JsonException {
            return new Delta(
                    fields.string("content"),
                    fields.string("role"),
                    fields.objects("tool_calls", ToolCallDelta::read));
        }
    }

    /**
     * An error in OpenAI's form.
     *
     * @param code A stable identifier for programs.
     * @param message What was attempted, what failed, and what to do next.
     * @param param The invalid field of the request.
     * @param retryable True if a retry may succeed.
     * @param status The HTTP status code, if a server returned one.
     * @param type The kind of error.
     */
    public record ErrorBody(
            @Nullable String code,
            String message,
            @Nullable String param,
            @Nullable Boolean retryable,
            @Nullable Long status,
            String type) {
        static ErrorBody read(Fields fields) throws JsonException {
            return new ErrorBody(
                    fields.string("code"),
                    Fields.or(fields.string("message"), ""),
                    fields.string("param"),
                    fields.bool("retryable"),
                    fields.integer("status"),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * The line of a fatal error.
     *
     * @param error The error, if the request failed.
     */
    public record FatalError(
            ErrorBody error) {
        static FatalError read(Fields fields) throws JsonException {
            return new FatalError(
                    Fields.or(fields.object("error", ErrorBody::read), ErrorBody.read(NO_FIELDS)));
        }
    }

    /**
     * The function and its arguments.
     *
     * @param arguments The arguments, a JSON object as text.
     * @param name The name of the tool.
     */
    public record FunctionCall(
            String arguments,
            String name) {
        static FunctionCall read(Fields fields) throws JsonException {
            return new FunctionCall(
                    Fields.or(fields.string("arguments"), ""),
                    Fields.or(fields.string("name"), ""));
        }
    }

    /**
     * An increment of a function call.
     *
     * @param arguments The next piece of the arguments as JSON text.
     * @param name The name of the tool; only in the first piece.
     */
    public record FunctionDelta(
            @Nullable String arguments,
            @Nullable String name) {
        static FunctionDelta read(Fields fields) throws JsonException {
            return new FunctionDelta(
                    fields.string("arguments"),
                    fields.string("name"));
        }
    }

    /**
     * A heartbeat of the worker.
     *
     * @param activity The activity of the running turn: `thinking`, `tool`, or `waiting` while the host runs a tool.
     * @param promptId The id of the running turn's prompt.
     * @param sessionId The id of the session.
     * @param status `ok`
     * @param tool The name of the tool that is running or that the host runs.
     * @param ts Seconds since the Unix epoch.
     * @param type `result/heartbeat`
     */
    public record HeartbeatLine(
            @Nullable String activity,
            @Named("prompt_id") @Nullable String promptId,
            @Named("session_id") String sessionId,
            String status,
            @Nullable String tool,
            long ts,
            String type) {
        static HeartbeatLine read(Fields fields) throws JsonException {
            return new HeartbeatLine(
                    fields.string("activity"),
                    fields.string("prompt_id"),
                    Fields.or(fields.string("session_id"), ""),
                    Fields.or(fields.string("status"), ""),
                    fields.string("tool"),
                    Fields.or(fields.integer("ts"), 0L),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * Completions of the text that is being typed.
     *
     * @param message The error, if there is one.
     * @param metadata Additional information about the suggestions.
     * @param promptId The `prompt_id` of the request.
     * @param sessionId The id of the session.
     * @param status `ok`, `loading` or `error`
     * @param suggestions The suggestions, best first.
     * @param trigger `slash` or `at`
     * @param type `result/command_hint`
     */
    public record HintLine(
            @Nullable String message,
            HintMetadata metadata,
            @Named("prompt_id") String promptId,
            @Named("session_id") String sessionId,
            String status,
            List<SuggestionItem> suggestions,
            String trigger,
            String type) {
        static HintLine read(Fields fields) throws JsonException {
            return new HintLine(
                    fields.string("message"),
                    Fields.or(fields.object("metadata", HintMetadata::read), HintMetadata.read(NO_FIELDS)),
                    Fields.or(fields.string("prompt_id"), ""),
                    Fields.or(fields.string("session_id"), ""),
                    Fields.or(fields.string("status"), ""),
                    Fields.or(fields.objects("suggestions", SuggestionItem::read), List.of()),
                    Fields.or(fields.string("trigger"), ""),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * Additional information about suggestions.
     *
     * @param isPerfectMatch True if the text already equals one of the suggestions.
     */
    public record HintMetadata(
            @Named("is_perfect_match") boolean isPerfectMatch) {
        static HintMetadata read(Fields fields) throws JsonException {
            return new HintMetadata(
                    Fields.or(fields.bool("is_perfect_match"), Boolean.FALSE));
        }
    }

    /**
     * Line counts of a change.
     *
     * @param aiAddedLines Lines that the model added.
     * @param aiRemovedLines Lines that the model removed.
     * @param userAddedLines Lines that the user added while approving.
     * @param userRemovedLines Lines that the user removed while approving.
     */
    public record LineCounts(
            @Named("ai_added_lines") long aiAddedLines,
            @Named("ai_removed_lines") long aiRemovedLines,
            @Named("user_added_lines") long userAddedLines,
            @Named("user_removed_lines") long userRemovedLines) {
        static LineCounts read(Fields fields) throws JsonException {
            return new LineCounts(
                    Fields.or(fields.integer("ai_added_lines"), 0L),
                    Fields.or(fields.integer("ai_removed_lines"), 0L),
                    Fields.or(fields.integer("user_added_lines"), 0L),
                    Fields.or(fields.integer("user_removed_lines"), 0L));
        }
    }

    /**
     * Information beyond OpenAI's fields.
     *
     * @param capabilities The names of the supported capabilities; only in the handshake.
     * @param controlErrors Failed control requests of the turn, also in its summary; only in its terminal record.
     * @param error The error, or the limit that was reached.
     * @param inputFormat The input format; in the handshake.
     * @param outputFormat The output format; in the handshake.
     * @param protocolVersion The protocol's version; in the handshake.
     * @param sessionId The session; in the handshake.
     * @param turn The summary of the turn; only in its terminal record.
     */
    public record Metadata(
            @Nullable List<String> capabilities,
            @Named("control_errors") @Nullable List<ErrorBody> controlErrors,
            @Nullable ErrorBody error,
            @Named("input_format") @Nullable String inputFormat,
            @Named("output_format") @Nullable String outputFormat,
            @Named("protocol_version") @Nullable String protocolVersion,
            @Named("session_id") @Nullable String sessionId,
            @Nullable TurnSummary turn) {
        static Metadata read(Fields fields) throws JsonException {
            return new Metadata(
                    fields.strings("capabilities"),
                    fields.objects("control_errors", ErrorBody::read),
                    fields.object("error", ErrorBody::read),
                    fields.string("input_format"),
                    fields.string("output_format"),
                    fields.string("protocol_version"),
                    fields.string("session_id"),
                    fields.object("turn", TurnSummary::read));
        }
    }

    /**
     * Figures that belong to a notice.
     *
     * @param attempt The attempt that failed, from 1.
     * @param compressedTokens The number of tokens after compaction.
     * @param delayMs The delay before the next attempt in milliseconds.
     * @param limit The limit that was reached.
     * @param maxRetries The maximum number of retries.
     * @param originalTokens The number of tokens before compaction.
     * @param status The HTTP status of the failed attempt.
     */
    public record Metrics(
            @Nullable Long attempt,
            @Named("compressed_tokens") @Nullable Long compressedTokens,
            @Named("delay_ms") @Nullable Long delayMs,
            @Nullable Long limit,
            @Named("max_retries") @Nullable Long maxRetries,
            @Named("original_tokens") @Nullable Long originalTokens,
            @Nullable Long status) {
        static Metrics read(Fields fields) throws JsonException {
            return new Metrics(
                    fields.integer("attempt"),
                    fields.integer("compressed_tokens"),
                    fields.integer("delay_ms"),
                    fields.integer("limit"),
                    fields.integer("max_retries"),
                    fields.integer("original_tokens"),
                    fields.integer("status"));
        }
    }

    /**
     * The usage of one model.
     *
     * @param cachedTokens The part of the prompt tokens served from the provider's cache.
     * @param calls The number of calls to the model.
     * @param completionTokens The number of output tokens.
     * @param costUsd The cost in US dollars; absent if the model's prices are unknown.
     * @param promptTokens The number of input tokens.
     * @param reasoningTokens The part of the completion tokens spent on thinking.
     * @param totalTokens The sum of both.
     */
    public record ModelTokens(
            @Named("cached_tokens") @Nullable Long cachedTokens,
            long calls,
            @Named("completion_tokens") long completionTokens,
            @Named("cost_usd") @Nullable Double costUsd,
            @Named("prompt_tokens") long promptTokens,
            @Named("reasoning_tokens") @Nullable Long reasoningTokens,
            @Named("total_tokens") long totalTokens) {
        static ModelTokens read(Fields fields) throws JsonException {
            return new ModelTokens(
                    fields.integer("cached_tokens"),
                    Fields.or(fields.integer("calls"), 0L),
                    Fields.or(fields.integer("completion_tokens"), 0L),
                    fields.number("cost_usd"),
                    Fields.or(fields.integer("prompt_tokens"), 0L),
                    fields.integer("reasoning_tokens"),
                    Fields.or(fields.integer("total_tokens"), 0L));
        }
    }

    /**
     * A response in the nested form.
     *
     * @param error The error, if the request failed.
     * @param requestId The id of the control request, repeated in its response.
     * @param response The content of the response.
     * @param subtype `success` or `error`
     */
    public record NestedAnswer(
            @Nullable String error,
            @Named("request_id") String requestId,
            @Nullable Json response,
            String subtype) {
        static NestedAnswer read(Fields fields) throws JsonException {
            return new NestedAnswer(
                    fields.string("error"),
                    Fields.or(fields.string("request_id"), ""),
                    Json.orNull(fields.value("response")),
                    Fields.or(fields.string("subtype"), ""));
        }
    }

    /**
     * A response on the control channel in the nested form, used for requests in that form.
     *
     * @param promptId The id of the running turn's prompt.
     * @param response The content of the response.
     * @param sessionId The id of the session.
     * @param type `control_response`
     */
    public record NestedResponseLine(
            @Named("prompt_id") @Nullable String promptId,
            NestedAnswer response,
            @Named("session_id") @Nullable String sessionId,
            String type) {
        static NestedResponseLine read(Fields fields) throws JsonException {
            return new NestedResponseLine(
                    fields.string("prompt_id"),
                    Fields.or(fields.object("response", NestedAnswer::read), NestedAnswer.read(NO_FIELDS)),
                    fields.string("session_id"),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * A tool call that was refused.
     *
     * @param arguments The arguments of the call, a JSON object.
     * @param reason The reason for the refusal.
     * @param toolCallId The id of the tool call.
     * @param toolName The name of the tool.
     */
    public record PermissionDenial(
            @Nullable Json arguments,
            String reason,
            @Named("tool_call_id") String toolCallId,
            @Named("tool_name") String toolName) {
        static PermissionDenial read(Fields fields) throws JsonException {
            return new PermissionDenial(
                    Json.orNull(fields.value("arguments")),
                    Fields.or(fields.string("reason"), ""),
                    Fields.or(fields.string("tool_call_id"), ""),
                    Fields.or(fields.string("tool_name"), ""));
        }
    }

    /**
     * Details of the prompt tokens.
     *
     * @param cacheWriteTokens Tokens newly written to the provider's cache.
     * @param cachedTokens Tokens served from the provider's cache.
     */
    public record PromptTokens(
            @Named("cache_write_tokens") @Nullable Long cacheWriteTokens,
            @Named("cached_tokens") long cachedTokens) {
        static PromptTokens read(Fields fields) throws JsonException {
            return new PromptTokens(
                    fields.integer("cache_write_tokens"),
                    Fields.or(fields.integer("cached_tokens"), 0L));
        }
    }

    /**
     * The result of a tool for display.
     *
     * @param agent The sub-agent's name.
     * @param description The task given to the sub-agent.
     * @param diff The unified diff.
     * @param fileName The path as displayed to users.
     * @param kind The kind, on which it depends which fields are set.
     * @param logScope A category for filtering: `tool`.
     * @param message A one-line summary.
     * @param modified The text after the change.
     * @param original The text before the change; null for a new file.
     * @param plan The plan, in Markdown.
     * @param result The sub-agent's final report.
     * @param stat Line counts.
     * @param status `running`, `completed`, `failed` or `cancelled`
     * @param text The text of the block.
     * @param todos The items of the list.
     * @param tokens The tokens used so far.
     * @param toolCalls The number of tool calls so far.
     */
    public record ResultDisplay(
            @Nullable String agent,
            @Nullable String description,
            @Nullable String diff,
            @Named("file_name") @Nullable String fileName,
            String kind,
            @Named("log_scope") @Nullable String logScope,
            @Nullable String message,
            @Nullable String modified,
            @Nullable String original,
            @Nullable String plan,
            @Nullable String result,
            @Nullable LineCounts stat,
            @Nullable String status,
            @Nullable String text,
            @Nullable List<TodoRecord> todos,
            @Nullable Long tokens,
            @Named("tool_calls") @Nullable Long toolCalls) {
        static ResultDisplay read(Fields fields) throws JsonException {
            return new ResultDisplay(
                    fields.string("agent"),
                    fields.string("description"),
                    fields.string("diff"),
                    fields.string("file_name"),
                    Fields.or(fields.string("kind"), ""),
                    fields.string("log_scope"),
                    fields.string("message"),
                    fields.string("modified"),
                    fields.string("original"),
                    fields.string("plan"),
                    fields.string("result"),
                    fields.object("stat", LineCounts::read),
                    fields.string("status"),
                    fields.string("text"),
                    fields.objects("todos", TodoRecord::read),
                    fields.integer("tokens"),
                    fields.integer("tool_calls"));
        }
    }

    /**
     * A notice about the session.
     *
     * @param event `Finished`, `ChatCompressed`, `MaxSessionTurns`, `USER_CANCELLED`, `MAX_TOKENS`, `Retry`, `ModelFallback`, `LoopDetected`, `ModeChanged`, `Steered` or `Custom`
     * @param message A message for users about the event.
     * @param metrics Figures that belong to the event.
     * @param parentToolCallId The id of the tool call that started the sub-agent.
     * @param promptId The id of the turn's prompt; absent outside a turn. For `Steered` the id of the prompt that joins; `value.turn` is the turn.
     * @param sessionId The id of the session.
     * @param type `x-qwen-session-event`
     * @param value The payload of a custom event.
     */
    public record SessionEventRecord(
            String event,
            @Nullable String message,
            @Nullable Metrics metrics,
            @Named("parent_tool_call_id") @Nullable String parentToolCallId,
            @Named("prompt_id") @Nullable String promptId,
            @Named("session_id") @Nullable String sessionId,
            String type,
            @Nullable Json value) {
        static SessionEventRecord read(Fields fields) throws JsonException {
            return new SessionEventRecord(
                    Fields.or(fields.string("event"), ""),
                    fields.string("message"),
                    fields.object("metrics", Metrics::read),
                    fields.string("parent_tool_call_id"),
                    fields.string("prompt_id"),
                    fields.string("session_id"),
                    Fields.or(fields.string("type"), ""),
                    Json.orNull(fields.value("value")));
        }
    }

    /**
     * A styled range, counted in Unicode scalar values of the record's text.
     *
     * @param end The position after the last character.
     * @param start The position of the first character.
     * @param style The style of the range.
     */
    public record Span(
            long end,
            long start,
            SpanStyle style) {
        static Span read(Fields fields) throws JsonException {
            return new Span(
                    Fields.or(fields.integer("end"), 0L),
                    Fields.or(fields.integer("start"), 0L),
                    Fields.or(fields.object("style", SpanStyle::read), SpanStyle.read(NO_FIELDS)));
        }
    }

    /**
     * The style of a range.
     *
     * @param themeToken The name of a colour in the theme, such as `AccentGreen`.
     */
    public record SpanStyle(
            @Named("theme_token") String themeToken) {
        static SpanStyle read(Fields fields) throws JsonException {
            return new SpanStyle(
                    Fields.or(fields.string("theme_token"), ""));
        }
    }

    /**
     * A completion of the text that is being typed.
     *
     * @param description A description of the suggestion.
     * @param label The text to display.
     * @param value The text to insert.
     */
    public record SuggestionItem(
            @Nullable String description,
            String label,
            String value) {
        static SuggestionItem read(Fields fields) throws JsonException {
            return new SuggestionItem(
                    fields.string("description"),
                    Fields.or(fields.string("label"), ""),
                    Fields.or(fields.string("value"), ""));
        }
    }

    /**
     * Terminal output: a tool's output, a log line, or the end of a run.
     *
     * @param ansi The removed escape sequences with their positions.
     * @param channel `stdout` or `stderr`
     * @param consoleLevel The level of a console line.
     * @param exitCode The exit code of the run; only if the source is `system`.
     * @param logScope The origin of the output: `system`, `tool` or `debug`.
     * @param parentToolCallId The id of the tool call that started the sub-agent whose tool wrote.
     * @param promptId The id of the turn's prompt; absent outside a turn.
     * @param sessionId The id of the session.
     * @param source `assistant`, `tool`, `console` or `system`
     * @param spans Styled ranges of `text`.
     * @param text The output without escape sequences.
     * @param toolCallId The id of the tool call that wrote.
     * @param type `x-qwen-terminal`
     */
    public record TerminalRecord(
            @Nullable List<AnsiCode> ansi,
            String channel,
            @Named("console_level") @Nullable String consoleLevel,
            @Named("exit_code") @Nullable Long exitCode,
            @Named("log_scope") @Nullable String logScope,
            @Named("parent_tool_call_id") @Nullable String parentToolCallId,
            @Named("prompt_id") @Nullable String promptId,
            @Named("session_id") @Nullable String sessionId,
            String source,
            @Nullable List<Span> spans,
            @Nullable String text,
            @Named("tool_call_id") @Nullable String toolCallId,
            String type) {
        static TerminalRecord read(Fields fields) throws JsonException {
            return new TerminalRecord(
                    fields.objects("ansi", AnsiCode::read),
                    Fields.or(fields.string("channel"), ""),
                    fields.string("console_level"),
                    fields.integer("exit_code"),
                    fields.string("log_scope"),
                    fields.string("parent_tool_call_id"),
                    fields.string("prompt_id"),
                    fields.string("session_id"),
                    Fields.or(fields.string("source"), ""),
                    fields.objects("spans", Span::read),
                    fields.string("text"),
                    fields.string("tool_call_id"),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * A thought of the model.
     *
     * @param description The text of the thought.
     * @param parentToolCallId The id of the tool call that started the sub-agent.
     * @param promptId The id of the turn's prompt.
     * @param sessionId The id of the session.
     * @param subject The subject of the thought.
     * @param type `x-qwen-thought`
     */
    public record ThoughtRecord(
            String description,
            @Named("parent_tool_call_id") @Nullable String parentToolCallId,
            @Named("prompt_id") @Nullable String promptId,
            @Named("session_id") @Nullable String sessionId,
            String subject,
            String type) {
        static ThoughtRecord read(Fields fields) throws JsonException {
            return new ThoughtRecord(
                    Fields.or(fields.string("description"), ""),
                    fields.string("parent_tool_call_id"),
                    fields.string("prompt_id"),
                    fields.string("session_id"),
                    Fields.or(fields.string("subject"), ""),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * An item of a to-do list.
     *
     * @param content The text of the item.
     * @param id The id of the item.
     * @param status `pending`, `in_progress` or `completed`
     */
    public record TodoRecord(
            String content,
            String id,
            String status) {
        static TodoRecord read(Fields fields) throws JsonException {
            return new TodoRecord(
                    Fields.or(fields.string("content"), ""),
                    Fields.or(fields.string("id"), ""),
                    Fields.or(fields.string("status"), ""));
        }
    }

    /**
     * Token counts under OpenAI's names.
     *
     * @param completionTokens Tokens written by the model.
     * @param completionTokensDetails Details of the completion tokens.
     * @param estimated True if the provider reported no usage and the counts are estimates.
     * @param promptTokens Tokens read by the model.
     * @param promptTokensDetails Details of the prompt tokens.
     * @param totalTokens The sum of both.
     */
    public record TokenUsage(
            @Named("completion_tokens") long completionTokens,
            @Named("completion_tokens_details") @Nullable CompletionTokens completionTokensDetails,
            @Nullable Boolean estimated,
            @Named("prompt_tokens") long promptTokens,
            @Named("prompt_tokens_details") @Nullable PromptTokens promptTokensDetails,
            @Named("total_tokens") long totalTokens) {
        static TokenUsage read(Fields fields) throws JsonException {
            return new TokenUsage(
                    Fields.or(fields.integer("completion_tokens"), 0L),
                    fields.object("completion_tokens_details", CompletionTokens::read),
                    fields.bool("estimated"),
                    Fields.or(fields.integer("prompt_tokens"), 0L),
                    fields.object("prompt_tokens_details", PromptTokens::read),
                    Fields.or(fields.integer("total_tokens"), 0L));
        }
    }

    /**
     * Increments of tool calls.
     *
     * @param function The function that is called.
     * @param id The id of the call; only in its first piece.
     * @param index The index of the call in its message.
     * @param type `function`; only in the first piece.
     */
    public record ToolCallDelta(
            FunctionDelta function,
            @Nullable String id,
            long index,
            @Nullable String type) {
        static ToolCallDelta read(Fields fields) throws JsonException {
            return new ToolCallDelta(
                    Fields.or(fields.object("function", FunctionDelta::read), FunctionDelta.read(NO_FIELDS)),
                    fields.string("id"),
                    Fields.or(fields.integer("index"), 0L),
                    fields.string("type"));
        }
    }

    /**
     * The state of a tool call.
     *
     * @param confirmation The content of the permission request while it is open.
     * @param parentToolCallId The id of the tool call that started the sub-agent.
     * @param pending The call has not started.
     * @param promptId The id of the turn's prompt.
     * @param resultDisplay The result for display.
     * @param sessionId The id of the session.
     * @param status `pending`, `confirming`, `executing`, `success`, `error` or `canceled`
     * @param timestamp Seconds since the Unix epoch.
     * @param toolCallId The id of the tool call.
     * @param toolName The name of the tool.
     * @param type `x-qwen-tool-display`
     */
    public record ToolDisplayRecord(
            @Nullable ConfirmationRecord confirmation,
            @Named("parent_tool_call_id") @Nullable String parentToolCallId,
            @Nullable Boolean pending,
            @Named("prompt_id") @Nullable String promptId,
            @Named("result_display") @Nullable ResultDisplay resultDisplay,
            @Named("session_id") @Nullable String sessionId,
            String status,
            long timestamp,
            @Named("tool_call_id") String toolCallId,
            @Named("tool_name") @Nullable String toolName,
            String type) {
        static ToolDisplayRecord read(Fields fields) throws JsonException {
            return new ToolDisplayRecord(
                    fields.object("confirmation", ConfirmationRecord::read),
                    fields.string("parent_tool_call_id"),
                    fields.bool("pending"),
                    fields.string("prompt_id"),
                    fields.object("result_display", ResultDisplay::read),
                    fields.string("session_id"),
                    Fields.or(fields.string("status"), ""),
                    Fields.or(fields.integer("timestamp"), 0L),
                    Fields.or(fields.string("tool_call_id"), ""),
                    fields.string("tool_name"),
                    Fields.or(fields.string("type"), ""));
        }
    }

    /**
     * A tool and its arguments.
     *
     * @param arguments The arguments of the call, a JSON object.
     * @param name The name of the tool.
     */
    public record ToolUse(
            @Nullable Json arguments,
            String name) {
        static ToolUse read(Fields fields) throws JsonException {
            return new ToolUse(
                    Json.orNull(fields.value("arguments")),
                    Fields.or(fields.string("name"), ""));
        }
    }

    /**
     * The summary of a turn.
     *
     * @param continuation True if the turn continued one that had ended under the same `prompt_id`.
     * @param controlErrors The control requests of the turn that failed.
     * @param durationMs The duration of the turn in milliseconds.
     * @param modelCalls The number of model calls.
     * @param permissionDenials The tool calls that were refused.
     * @param status `done`, `error`, `cancelled`, `interrupted` or the limit that was reached.
     * @param structuredOutput The validated structured output, if a schema was given.
     * @param toolCalls The number of tool calls.
     * @param usageByAgent The part of the turn that sub-agents spent, by name; absent without sub-agents.
     * @param usageByModel The usage of the turn by model.
     */
    public record TurnSummary(
            @Nullable Boolean continuation,
            @Named("control_errors") @Nullable List<ErrorBody> controlErrors,
            @Named("duration_ms") long durationMs,
            @Named("model_calls") long modelCalls,
            @Named("permission_denials") List<PermissionDenial> permissionDenials,
            String status,
            @Named("structured_output") @Nullable Json structuredOutput,
            @Named("tool_calls") long toolCalls,
            @Named("usage_by_agent") @Nullable Map<String, AgentTokens> usageByAgent,
            @Named("usage_by_model") Map<String, ModelTokens> usageByModel) {
        static TurnSummary read(Fields fields) throws JsonException {
            return new TurnSummary(
                    fields.bool("continuation"),
                    fields.objects("control_errors", ErrorBody::read),
                    Fields.or(fields.integer("duration_ms"), 0L),
                    Fields.or(fields.integer("model_calls"), 0L),
                    Fields.or(fields.objects("permission_denials", PermissionDenial::read), List.of()),
                    Fields.or(fields.string("status"), ""),
                    Json.orNull(fields.value("structured_output")),
                    Fields.or(fields.integer("tool_calls"), 0L),
                    fields.objectMap("usage_by_agent", AgentTokens::read),
                    Fields.or(fields.objectMap("usage_by_model", ModelTokens::read), Map.of()));
        }
    }

    /**
     * A complete tool call.
     *
     * @param function The function that is called.
     * @param id The id of the call, unique in its session.
     * @param type Always the literal `function`.
     */
    public record WireToolCall(
            FunctionCall function,
            String id,
            String type) {
        static WireToolCall read(Fields fields) throws JsonException {
            return new WireToolCall(
                    Fields.or(fields.object("function", FunctionCall::read), FunctionCall.read(NO_FIELDS)),
                    Fields.or(fields.string("id"), ""),
                    Fields.or(fields.string("type"), ""));
        }
    }
}
