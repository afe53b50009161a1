package io.github.qwenagent.internal.hub;

import io.github.qwenagent.internal.json.Fields;
import io.github.qwenagent.internal.json.JsonException;
import io.github.qwenagent.internal.json.JsonReader;
import org.jspecify.annotations.Nullable;

/**
 * The part of a line that decides where it goes. The kind is the line's `type` or `object`, empty if it has neither; the
 * number is 0 if lines are not numbered. The fields are null if the line is not a JSON object.
 */
public record Envelope(String kind, String sessionId, String promptId, String requestId, long seq, @Nullable Fields fields) {
    /** Reads where a line goes. It never fails. */
    public static Envelope read(byte[] line) {
        Fields fields;
        try {
            fields = Fields.of(JsonReader.read(line));
        } catch (JsonException e) {
            fields = null;
        }
        if (fields == null) {
            return new Envelope("", "", "", "", 0, null);
        }
        String type = fields.text("type");
        return new Envelope(type.isEmpty() ? fields.text("object") : type, fields.text("session_id"), fields.text("prompt_id"),
                fields.text("request_id"), fields.count("seq"), fields);
    }
}
