package io.github.qwenagent.internal.hub;

import io.github.qwenagent.internal.json.JsonException;
import io.github.qwenagent.internal.json.JsonReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads the lines that carry a piece of text, which are most lines of a stream, without decoding them whole. The pieces of a
 * turn start alike: a line with the same start as a line that was decoded differs in its text only. The mark cannot be part
 * of a string, where its quotes would be escaped.
 */
public final class TextLines {
    private static final byte[] MARK = bytes("\"delta\":{\"content\":\"");
    private static final byte[] TAIL = bytes("\"},\"finish_reason\":null}]}");
    private static final byte[] SEQ = bytes("{\"seq\":");
    /** Bounds the starts that are remembered; they contain the time in seconds. */
    private static final int MAX_HEADS = 256;
    /** More digits than any number of a line has. */
    private static final int MAX_SEQ_DIGITS = 18;

    private record Target(HubReceiver receiver, String promptId) {}

    /** The start of a line, compared by its bytes. */
    private static final class Head {
        private byte[] line = new byte[0];
        private int from;
        private int to;
        private int hash;

        Head set(byte[] text, int start, int end) {
            line = text;
            from = start;
            to = end;
            hash = 1;
            for (int i = start; i < end; i++) {
                hash = 31 * hash + text[i];
            }
            return this;
        }

        Head copy() {
            byte[] own = Arrays.copyOfRange(line, from, to);
            return new Head().set(own, 0, own.length);
        }

        boolean isStartOf(byte[] text, int start, int end) {
            return Arrays.equals(line, from, to, text, start, end);
        }

        @Override
        public boolean equals(@Nullable Object other) {
            return other instanceof Head head && head.isStartOf(line, from, to);
        }

        @Override
        public int hashCode() {
            return hash;
        }
    }

    private final Map<Head, Target> targets = new HashMap<>();
    private final Head probe = new Head();
    private @Nullable Head lastHead;
    private @Nullable Target lastTarget;
    /** The parts of the line that was split last. */
    private long seq;
    private int headStart;
    private int textStart;
    private int textEnd;

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    /** Passes the text of a line on if the line's start is known. */
    public boolean deliver(byte[] line) {
        if (!split(line)) {
            return false;
        }
        Target target = find(line);
        if (target == null) {
            return false;
        }
        String text = unquote(line);
        if (text == null || text.isEmpty()) {
            return false;
        }
        target.receiver.text(target.promptId, text, seq, line);
        return true;
    }

    private @Nullable Target find(byte[] line) {
        if (lastHead != null && lastHead.isStartOf(line, headStart, textStart)) {
            return lastTarget;
        }
        probe.set(line, headStart, textStart);
        Target target = targets.get(probe);
        if (target != null) {
            lastHead = probe.copy();
            lastTarget = target;
        }
        return target;
    }

    /** Remembers the start of a line that was decoded. */
    public void learn(byte[] line, String promptId, HubReceiver receiver) {
        if (promptId.isEmpty() || !split(line)) {
            return;
        }
        if (targets.size() >= MAX_HEADS) {
            targets.clear();
        }
        targets.put(probe.set(line, headStart, textStart).copy(), new Target(receiver, promptId));
    }

    /** Forgets all starts: receivers have changed. */
    void forget() {
        targets.clear();
        lastHead = null;
        lastTarget = null;
    }

    private boolean split(byte[] line) {
        seq = 0;
        headStart = 0;
        if (startsWith(line, 0, SEQ) && !splitNumber(line)) {
            return false;
        }
        textEnd = line.length - TAIL.length;
        if (textEnd < 0 || !startsWith(line, textEnd, TAIL)) {
            return false;
        }
        int mark = indexOfMark(line, headStart);
        textStart = mark + MARK.length;
        return mark >= 0 && textStart <= textEnd;
    }

    private boolean splitNumber(byte[] line) {
        int at = SEQ.length;
        while (at < line.length && line[at] >= '0' && line[at] <= '9') {
            seq = seq * 10 + line[at] - '0';
            at++;
        }
        headStart = at;
        return at < line.length && line[at] == ',' && at - SEQ.length <= MAX_SEQ_DIGITS && at > SEQ.length;
    }

    private static boolean startsWith(byte[] line, int at, byte[] wanted) {
        return at + wanted.length <= line.length && Arrays.equals(line, at, at + wanted.length, wanted, 0, wanted.length);
    }

    private static int indexOfMark(byte[] line, int from) {
        for (int i = from; i + MARK.length <= line.length; i++) {
            if (line[i] == '"' && line[i + 1] == 'd' && startsWith(line, i, MARK)) {
                return i;
            }
        }
        return -1;
    }

    /** Returns the string between the quotes; null if it is not one string. */
    private @Nullable String unquote(byte[] line) {
        boolean isPlain = true;
        for (int i = textStart; i < textEnd; i++) {
            if (line[i] == '\\') {
                isPlain = false;
            } else if ((line[i] == '"' && isPlain) || (line[i] >= 0 && line[i] < 0x20)) {
                return null;
            }
        }
        if (isPlain) {
            return new String(line, textStart, textEnd - textStart, StandardCharsets.UTF_8);
        }
        try {
            return JsonReader.read(line, textStart - 1, textEnd + 1) instanceof String text ? text : null;
        } catch (JsonException e) {
            return null;
        }
    }
}
