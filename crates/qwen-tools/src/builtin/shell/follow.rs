//! Follows a command in the foreground until it ends or moves to the background.

use std::pin::pin;
use std::time::Duration;

use qwen_events::Channel;
use qwen_sandbox::process::Exit;

use crate::CallContext;
use crate::background::{ForegroundCall, StartedCommand};
use crate::output::clean_pipe::BUFFER;
use crate::output::plain_output::PlainOutput;
use crate::output::transcript::Transcript;

/// How many pieces are read after all processes of the command have ended. Bounded, because a process outside
/// our control may hold a descriptor.
const LEFT_OVER_READS: usize = 128;

/// Why we ended a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Cancelled,
    TimedOut,
}

/// How the wait for a command ended.
pub(super) enum Followed {
    Ended(Exit, Option<Ending>),
    /// The command continues in the background.
    Moved(Box<StartedCommand>),
}

/// Forwards the command's output until all its processes have ended, or it is moved to the background.
pub(super) async fn follow(
    started: StartedCommand,
    cx: &CallContext,
    timeout: Duration,
    transcript: &mut Transcript<'_>,
    foreground: &ForegroundCall,
) -> Followed {
    let StartedCommand { mut running, mut output } = started;
    let mut buffer = vec![0; BUFFER];
    // Displays get the output as it is, the model without escape sequences.
    let mut plain = PlainOutput::default();
    let mut ending = None;
    let mut stop = pin!(async {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Ending::Cancelled,
            () = tokio::time::sleep(timeout) => Ending::TimedOut,
        }
    });
    let exit = loop {
        let (channel, text) = tokio::select! {
            biased;
            why = &mut stop, if ending.is_none() => {
                ending = Some(why);
                running.terminate();
                continue;
            }
            () = foreground.moved(), if ending.is_none() => {
                transcript.push(&plain.finish());
                return Followed::Moved(Box::new(StartedCommand { running, output }));
            }
            Some(piece) = output.next(&mut buffer) => piece,
            exit = running.wait() => break exit,
        };
        transcript.push(&plain.push(&text));
        // A slow reader slows the command down, but must not prevent ending it.
        let mut sent = cx.output.output(channel, text);
        loop {
            tokio::select! {
                biased;
                () = &mut sent => break,
                why = &mut stop, if ending.is_none() => {
                    ending = Some(why);
                    running.terminate();
                }
            }
        }
    };
    let mut left_over: Vec<(Channel, Box<str>)> = Vec::new();
    left_over.extend(std::iter::from_fn(|| output.read_now(&mut buffer)).take(LEFT_OVER_READS));
    left_over.extend(output.rest());
    for (channel, text) in left_over {
        transcript.push(&plain.push(&text));
        cx.output.output(channel, text).await;
    }
    transcript.push(&plain.finish());
    Followed::Ended(exit, ending)
}
