//! Prompts whose turn never comes: each has its terminal record all the same.

use qwen_engine::{Stop, TurnInput};
use qwen_events::{Message, PromptOrigin, Role};
use tokio::sync::mpsc;

use super::Incoming;
use super::serve::{Flow, Queued, Worker};

/// The ends of so many prompts wait for the disk together: each alone, a full queue would take longer than a worker has
/// that is told to end.
const AT_ONCE: usize = 512;

impl Worker {
    /// Ends the prompts whose turn does not come any more, so that each has its terminal record.
    pub(super) async fn dismiss(&mut self, incoming: &mut mpsc::Receiver<Incoming>) {
        let mut stop = Stop::cancelled();
        if self.ending.is_stopped() {
            stop = self.ending.cause();
            // What was read before the signal was said in time.
            for _ in 0..incoming.len() {
                let Ok(line) = incoming.try_recv() else { break };
                if let Flow::Exit(_) = self.take(line, None).await {
                    break;
                }
            }
        }
        let held = self.emit.holding();
        let live = std::mem::replace(&mut self.emit, held);
        let mut since = 0;
        while let Some(queued) = self.queue.pop_front() {
            if !queued.goes_on {
                let stop = if queued.withdrawn { Stop::cancelled() } else { stop.clone() };
                self.unspoken(queued, stop).await;
                since += 1;
            }
            if since == AT_ONCE || self.queue.is_empty() {
                self.emit.release().await;
                since = 0;
            }
        }
        self.emit = live;
    }

    /// Ends a prompt without a turn, because of `stop`.
    pub(super) async fn unspoken(&mut self, queued: Queued, stop: Stop) {
        let Some(mut session) = self.begin(&queued).await else { return };
        let prompt = queued.prompt;
        if prompt.origin == PromptOrigin::System {
            session.remember([Message { role: Role::User, parts: prompt.parts }]);
        } else {
            let input = TurnInput {
                prompt_id: prompt.prompt_id,
                message_uuid: prompt.uuid,
                parts: prompt.parts,
                model: prompt.options.model,
                trace: prompt.trace,
                ..TurnInput::default()
            };
            session.withdrawn(input, stop, &self.emit).await;
        }
        self.session = Some(session);
    }
}
