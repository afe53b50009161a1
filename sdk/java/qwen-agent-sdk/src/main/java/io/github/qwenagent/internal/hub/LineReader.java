package io.github.qwenagent.internal.hub;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Splits a stream into lines of any length. */
final class LineReader {
    private static final int BUFFER = 64 * 1024;

    private final InputStream in;
    private final byte[] buffer = new byte[BUFFER];
    private int start;
    private int end;

    LineReader(InputStream in) {
        this.in = in;
    }

    /** Returns the next line without its end, or null at the end of the stream. The array belongs to the caller. */
    byte @Nullable [] next() throws IOException {
        byte[] line = null;
        int length = 0;
        while (true) {
            for (int i = start; i < end; i++) {
                if (buffer[i] == '\n') {
                    byte[] complete = append(line, length, i);
                    length += i - start;
                    start = i + 1;
                    return trim(complete, length);
                }
            }
            if (end > start) {
                line = append(line, length, end);
                length += end - start;
            }
            start = 0;
            end = Math.max(0, in.read(buffer));
            if (end == 0) {
                return line == null ? null : trim(line, length);
            }
        }
    }

    /** Appends the buffer up to `to` to a line of which `length` bytes are in use. */
    private byte[] append(byte @Nullable [] line, int length, int to) {
        int added = to - start;
        if (line == null) {
            return Arrays.copyOfRange(buffer, start, to);
        }
        byte[] target = line;
        if (length + added > line.length) {
            target = Arrays.copyOf(line, Math.max(length + added, line.length + (line.length >> 1)));
        }
        System.arraycopy(buffer, start, target, length, added);
        return target;
    }

    private static byte[] trim(byte[] line, int length) {
        int kept = length > 0 && line[length - 1] == '\r' ? length - 1 : length;
        return kept == line.length ? line : Arrays.copyOf(line, kept);
    }
}
