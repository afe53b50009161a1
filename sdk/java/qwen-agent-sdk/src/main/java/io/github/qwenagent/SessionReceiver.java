package io.github.qwenagent;

import io.github.qwenagent.internal.hub.Envelope;
import io.github.qwenagent.internal.hub.HubReceiver;
import io.github.qwenagent.internal.json.Fields;
import java.util.List;
import java.util.function.Supplier;

/** Gets the session's lines from the hub. */
final class SessionReceiver implements HubReceiver {
    private final Session session;
    private final ControlChannel control;
    private final List<Attachment> attachments;
    /** The number of the last line that was delivered. It belongs to the reader of the hub's output. */
    private long lastSeq;

    SessionReceiver(Session session, ControlChannel control, List<Attachment> attachments) {
        this.session = session;
        this.control = control;
        this.attachments = attachments;
    }

    @Override
    public void lost(Supplier<QwenException> cause) {
        control.cancel(null);
        session.fail(cause);
    }

    @Override
    public void text(String promptId, String text, long seq, byte[] line) {
        boolean isReplay = isReplay(seq);
        Message.Meta meta = new Message.Meta(session.id(), promptId, seq, line);
        for (Attachment attachment : attachments) {
            attachment.acceptText(meta, text);
        }
        Turn turn = isReplay ? null : session.askingTurn(promptId);
        if (turn != null) {
            turn.acceptText(meta, text);
        }
    }

    @Override
    public void line(Envelope envelope, byte[] line) {
        switch (envelope.kind()) {
            case Wire.CONTROL_REQUEST -> {
                if (envelope.fields() != null) {
                    control.handle(envelope.fields());
                }
                number(envelope.seq());
            }
            case Wire.CONTROL_CANCEL_REQUEST -> {
                control.withdraw(envelope.requestId());
                number(envelope.seq());
            }
            case Wire.CONTROL_RESPONSE -> number(envelope.seq());
            default -> deliver(envelope, line);
        }
    }

    private void deliver(Envelope envelope, byte[] line) {
        boolean isReplay = isReplay(envelope.seq());
        Message.Meta meta = new Message.Meta(session.id(), envelope.promptId(), envelope.seq(), line);
        for (Attachment attachment : attachments) {
            attachment.accept(meta, envelope);
        }
        Turn turn = isReplay ? null : session.askingTurn(envelope.promptId());
        if (turn != null) {
            turn.accept(meta, envelope);
        }
        if (!isReplay && envelope.kind().equals(Wire.X_QWEN_SESSION_EVENT) && envelope.fields() != null) {
            followFork(envelope.fields());
        }
    }

    /** Notes the number of a line; true if it was delivered before. */
    private boolean isReplay(long seq) {
        if (seq == 0) {
            return false;
        }
        boolean isOld = seq <= lastSeq;
        lastSeq = Math.max(lastSeq, seq);
        return isOld;
    }

    private void number(long seq) {
        isReplay(seq);
        attachments.forEach(attachment -> attachment.skip(seq));
    }

    /** Continues under the id of a fork if the line announces one: further lines carry that id. */
    private void followFork(Fields line) {
        Fields notice = line.optional("value");
        if (notice == null || !notice.text("kind").equals("worker_restarted") || notice.text("forked_from").isEmpty()
                || notice.text("session_id").isEmpty()) {
            return;
        }
        session.continueAs(notice.text("session_id"));
        lastSeq = 0;
        attachments.forEach(Attachment::restart);
    }
}
