package io.github.qwenagent.internal.hub;

import io.github.qwenagent.internal.json.Fields;
import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;

/** Reads the hub's structured log: passes the records to the host's logger and keeps the end of what was written. */
final class StderrReader {
    private static final int TAIL = 16 * 1024;

    private final Logger logger;
    /** Read by the thread that reports the end of the hub, so access is synchronized. */
    private final StringBuilder tail = new StringBuilder();

    StderrReader(Logger logger) {
        this.logger = logger;
    }

    synchronized String tail() {
        return tail.substring(Math.max(0, tail.length() - TAIL));
    }

    void run(InputStream pipe) {
        LineReader lines = new LineReader(pipe);
        try {
            for (byte[] line = lines.next(); line != null; line = lines.next()) {
                accept(line);
            }
        } catch (IOException e) {
            // The pipe was closed with its process.
            logger.log(Level.TRACE, "hub stderr ended", e);
        }
    }

    private void accept(byte[] line) {
        Fields record = Fields.parse(line);
        if (record == null) {
            String text = new String(line, StandardCharsets.UTF_8);
            keep(text);
            logger.log(Level.WARNING, "hub stderr: {0}", text);
            return;
        }
        String event = record.text("event");
        if (event.equals("worker_stderr") || event.equals("error")) {
            keep(record.text("text"));
        }
        Level level = switch (record.text("level")) {
            case "warn", "warning" -> Level.WARNING;
            case "error" -> Level.ERROR;
            default -> Level.DEBUG;
        };
        if (logger.isLoggable(level)) {
            record.map().remove("event");
            record.map().remove("level");
            record.map().remove("time");
            logger.log(level, "hub {0} {1}", event, record.map());
        }
    }

    private synchronized void keep(String text) {
        tail.append(text).append('\n');
        if (tail.length() > 2 * TAIL) {
            tail.delete(0, tail.length() - TAIL);
        }
    }
}
