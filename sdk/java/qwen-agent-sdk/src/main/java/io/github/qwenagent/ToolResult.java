package io.github.qwenagent;

import java.util.Base64;
import java.util.List;
import java.util.Map;

/**
 * The result of a tool that is more than one value.
 *
 * @param content the parts
 * @param isError true for a failure
 */
public record ToolResult(List<Content> content, boolean isError) {
    /**
     * A part of a tool's result.
     *
     * @param fields the part as MCP has it, such as `{"type": "text", "text": "…"}`
     */
    public record Content(Map<String, ?> fields) {
        /**
         * Returns a text.
         *
         * @param text the text
         * @return the part
         */
        public static Content text(String text) {
            return new Content(Map.of("type", "text", "text", text));
        }

        /**
         * Returns an image.
         *
         * @param data the bytes of the file
         * @param mimeType such as `image/png`
         * @return the part
         */
        public static Content image(byte[] data, String mimeType) {
            return new Content(Map.of("type", "image", "data", Base64.getEncoder().encodeToString(data), "mimeType", mimeType));
        }
    }

    /**
     * Returns a successful result.
     *
     * @param content the parts
     * @return the result
     */
    public static ToolResult of(Content... content) {
        return new ToolResult(List.of(content), false);
    }

    Map<String, Object> wire() {
        return Map.of("content", content.stream().map(Content::fields).toList(), "isError", isError);
    }
}
