package io.github.qwenagent.suite;

import java.text.MessageFormat;
import java.util.List;
import java.util.Queue;
import java.util.ResourceBundle;
import java.util.concurrent.ConcurrentLinkedQueue;

/** A logger that keeps what it gets. */
final class RecordingLogger implements System.Logger {
    private final Queue<String> records = new ConcurrentLinkedQueue<>();

    @Override
    public String getName() {
        return "recording";
    }

    @Override
    public boolean isLoggable(Level level) {
        return true;
    }

    @Override
    public void log(Level level, ResourceBundle bundle, String message, Throwable thrown) {
        records.add(message + " " + thrown);
    }

    @Override
    public void log(Level level, ResourceBundle bundle, String format, Object... parameters) {
        records.add(parameters == null ? format : MessageFormat.format(format, parameters));
    }

    /** Returns the records that begin with a text. */
    List<String> with(String start) {
        return records.stream().filter(record -> record.startsWith(start)).toList();
    }

    int count(String start) {
        return with(start).size();
    }
}
