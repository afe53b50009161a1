package io.github.qwenagent.internal.json;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads JSON text into maps, lists, strings, numbers, booleans and null. Integers are {@link Long} or, out of its range,
 * {@link BigInteger}; other numbers are {@link Double} or, out of its range, {@link BigDecimal}. Of equal keys the last one
 * counts. Bytes that are not UTF-8 become replacement characters.
 */
public final class JsonReader {
    /** Bounds the nesting, and with it the stack that a line can cost. */
    private static final int MAX_DEPTH = 512;
    /** Bounds the digits of a number: the conversion of more takes more than linear time. */
    private static final int MAX_DIGITS = 1_000;

    private final byte[] text;
    private final int end;
    private int at;
    private int depth;

    private JsonReader(byte[] text, int start, int end) {
        this.text = text;
        this.at = start;
        this.end = end;
    }

    /**
     * Reads one value that takes up the whole text.
     *
     * @throws JsonException if the text is not valid JSON
     */
    public static @Nullable Object read(byte[] text) throws JsonException {
        return read(text, 0, text.length);
    }

    /**
     * Reads one value that takes up a part of the text.
     *
     * @throws JsonException if the part is not valid JSON
     */
    public static @Nullable Object read(byte[] text, int start, int end) throws JsonException {
        JsonReader reader = new JsonReader(text, start, end);
        Object value = reader.value();
        reader.skipBlanks();
        if (reader.at != end) {
            throw reader.failure("unexpected text after the value");
        }
        return value;
    }

    /**
     * Reads one value that takes up the whole text.
     *
     * @throws JsonException if the text is not valid JSON
     */
    public static @Nullable Object read(String text) throws JsonException {
        return read(text.getBytes(StandardCharsets.UTF_8));
    }

    private @Nullable Object value() throws JsonException {
        skipBlanks();
        if (at == end) {
            throw failure("the text ends before the value");
        }
        byte first = text[at];
        switch (first) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            case 't':
                return literal("true", true);
            case 'f':
                return literal("false", false);
            case 'n':
                return literal("null", null);
            default:
                return number();
        }
    }

    private Map<String, @Nullable Object> object() throws JsonException {
        enter();
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        skipBlanks();
        if (isNext('}')) {
            depth--;
            return fields;
        }
        while (true) {
            skipBlanks();
            if (at == end || text[at] != '"') {
                throw failure("a name is missing");
            }
            String name = string();
            skipBlanks();
            expect(':');
            fields.put(name, value());
            skipBlanks();
            if (isNext('}')) {
                depth--;
                return fields;
            }
            expect(',');
        }
    }

    private List<@Nullable Object> array() throws JsonException {
        enter();
        List<@Nullable Object> items = new ArrayList<>();
        skipBlanks();
        if (isNext(']')) {
            depth--;
            return items;
        }
        while (true) {
            items.add(value());
            skipBlanks();
            if (isNext(']')) {
                depth--;
                return items;
            }
            expect(',');
        }
    }

    private void enter() throws JsonException {
        at++;
        if (++depth > MAX_DEPTH) {
            throw failure("more than " + MAX_DEPTH + " levels");
        }
    }

    private String string() throws JsonException {
        int start = ++at;
        while (at < end) {
            byte next = text[at];
            if (next == '"') {
                String plain = new String(text, start, at - start, StandardCharsets.UTF_8);
                at++;
                return plain;
            }
            if (next == '\\') {
                return escaped(start);
            }
            checkCharacter(next);
            at++;
        }
        throw failure("the text ends in a string");
    }

    /** Reads a string that contains an escape; `start` is its first character. */
    private String escaped(int start) throws JsonException {
        StringBuilder built = new StringBuilder(new String(text, start, at - start, StandardCharsets.UTF_8));
        while (at < end) {
            int plain = at;
            while (at < end && text[at] != '"' && text[at] != '\\') {
                checkCharacter(text[at]);
                at++;
            }
            if (at > plain) {
                built.append(new String(text, plain, at - plain, StandardCharsets.UTF_8));
            }
            if (at == end) {
                break;
            }
            if (text[at++] == '"') {
                return built.toString();
            }
            built.append(escape());
        }
        throw failure("the text ends in a string");
    }

    private char escape() throws JsonException {
        if (at == end) {
            throw failure("the text ends in a string");
        }
        byte kind = text[at++];
        switch (kind) {
            case '"':
            case '\\':
            case '/':
                return (char) kind;
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                int code = 0;
                for (int i = 0; i < 4; i++) {
                    int digit = at < end ? Character.digit(text[at], 16) : -1;
                    if (digit < 0) {
                        throw failure("an escape is not four hexadecimal digits");
                    }
                    code = code << 4 | digit;
                    at++;
                }
                return (char) code;
            default:
                throw failure("an unknown escape");
        }
    }

    private void checkCharacter(byte character) throws JsonException {
        if (character >= 0 && character < 0x20) {
            throw failure("a control character in a string");
        }
    }

    private @Nullable Object literal(String word, @Nullable Object value) throws JsonException {
        for (int i = 0; i < word.length(); i++) {
            if (at + i >= end || text[at + i] != word.charAt(i)) {
                throw failure("not a value");
            }
        }
        at += word.length();
        return value;
    }

    private Object number() throws JsonException {
        int start = at;
        isNext('-');
        int digits = at;
        digits();
        if (at - digits > 1 && text[digits] == '0') {
            throw failure("a number begins with 0");
        }
        boolean isIntegral = true;
        if (isNext('.')) {
            isIntegral = false;
            digits();
        }
        if (at < end && (text[at] == 'e' || text[at] == 'E')) {
            at++;
            isIntegral = false;
            if (!isNext('+')) {
                isNext('-');
            }
            digits();
        }
        if (at - start > MAX_DIGITS) {
            throw failure("a number of more than " + MAX_DIGITS + " characters");
        }
        String written = new String(text, start, at - start, StandardCharsets.ISO_8859_1);
        return isIntegral ? integer(written) : decimal(written);
    }

    private static Object integer(String written) {
        if (written.length() <= 18) {
            return Long.valueOf(written);
        }
        BigInteger exact = new BigInteger(written);
        if (exact.bitLength() < Long.SIZE) {
            return exact.longValue();
        }
        return exact;
    }

    private Object decimal(String written) throws JsonException {
        double value = Double.parseDouble(written);
        if (!Double.isInfinite(value)) {
            return value;
        }
        try {
            return new BigDecimal(written);
        } catch (NumberFormatException e) {
            throw failure("a number out of range");
        }
    }

    private void digits() throws JsonException {
        int start = at;
        while (at < end && text[at] >= '0' && text[at] <= '9') {
            at++;
        }
        if (at == start) {
            throw failure("not a value");
        }
    }

    private boolean isNext(char wanted) {
        if (at < end && text[at] == wanted) {
            at++;
            return true;
        }
        return false;
    }

    private void expect(char wanted) throws JsonException {
        if (!isNext(wanted)) {
            throw failure("'" + wanted + "' is missing");
        }
    }

    private void skipBlanks() {
        while (at < end && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) {
            at++;
        }
    }

    private JsonException failure(String what) {
        return new JsonException("It is not valid JSON: " + what + " at byte " + at + ".");
    }
}
