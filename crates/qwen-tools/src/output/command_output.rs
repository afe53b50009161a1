//! Both output streams of a command, in the order in which it wrote to them.

use std::collections::VecDeque;
use std::sync::Arc;

use qwen_events::Channel;
use qwen_redact::Redactor;
use qwen_sandbox::process::{OutputOrder, OutputStream, ReadyStream, Running};

use super::clean_pipe::CleanPipe;

/// The output of a running command, with secrets redacted.
pub(crate) struct CommandOutput {
    stdout: CleanPipe,
    stderr: CleanPipe,
    order: Option<OutputOrder>,
    /// Streams with output that was not read yet, oldest first.
    due: VecDeque<ReadyStream>,
}

impl CommandOutput {
    /// Takes the output of a command that was started with `ordered_output`.
    pub(crate) fn take(running: &mut Running, redactor: &Arc<Redactor>) -> Self {
        Self {
            stdout: CleanPipe::new(running.stdout.take(), redactor),
            stderr: CleanPipe::new(running.stderr.take(), redactor),
            order: running.order.take(),
            due: VecDeque::new(),
        }
    }

    /// True if no process can write any more and all output was read.
    fn is_closed(&self) -> bool {
        self.stdout.is_closed() && self.stderr.is_closed()
    }

    /// Waits for the next piece of output. Returns `None` once both streams are closed.
    pub(crate) async fn next(&mut self, buffer: &mut [u8]) -> Option<(Channel, Box<str>)> {
        loop {
            if let Some(piece) = self.read_now(buffer) {
                return Some(piece);
            }
            let order = self.order.as_ref().filter(|_| !self.is_closed())?;
            let ready = order.ready().await;
            self.due.extend(ready);
        }
    }

    /// Returns the next piece of output that has already arrived. Consecutive writes to one stream are joined up
    /// to the size of the buffer: each piece is an event.
    pub(crate) fn read_now(&mut self, buffer: &mut [u8]) -> Option<(Channel, Box<str>)> {
        let (channel, first) = self.read_write(buffer, None)?;
        let mut text = String::from(first);
        while text.len() < buffer.len()
            && let Some((_, more)) = self.read_write(buffer, Some(channel))
        {
            text.push_str(&more);
        }
        Some((channel, text.into()))
    }

    /// Reads one write of the command; with `only`, none if the next one went to the other stream.
    fn read_write(&mut self, buffer: &mut [u8], only: Option<Channel>) -> Option<(Channel, Box<str>)> {
        if self.due.is_empty() {
            self.due.extend(self.order.as_ref()?.take_ready());
        }
        while let Some(next) = self.due.front().copied() {
            let (pipe, channel) = match next.stream {
                OutputStream::Stdout => (&mut self.stdout, Channel::Stdout),
                OutputStream::Stderr => (&mut self.stderr, Channel::Stderr),
            };
            if only.is_some_and(|only| only != channel) {
                return None;
            }
            let text = pipe.read(buffer);
            if !next.is_closed || text.is_none() {
                self.due.pop_front();
            }
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                return Some((channel, text));
            }
        }
        None
    }

    /// Returns the texts that were held back as possible secrets.
    pub(crate) fn rest(&mut self) -> impl Iterator<Item = (Channel, Box<str>)> {
        let rest = [(Channel::Stdout, self.stdout.rest()), (Channel::Stderr, self.stderr.rest())];
        rest.into_iter().filter_map(|(channel, text)| Some((channel, text?)))
    }
}
