//! Patterns for groups of events that most consumers treat alike. A match that uses them stays exhaustive: a
//! new event does not compile until each consumer names it, or until it is added to one of these groups,
//! which decides for all consumers of the group.

/// The steps and the state of the agent's graph.
#[macro_export]
macro_rules! graph_events {
    () => {
        $crate::Body::NodeEnter
            | $crate::Body::NodeExit { .. }
            | $crate::Body::State(..)
            | $crate::Body::Checkpoint(..)
            | $crate::Body::ThoughtUsage(..)
            | $crate::Body::Journal(..)
    };
}

/// The pieces of a message that the model is still writing.
#[macro_export]
macro_rules! message_pieces {
    () => {
        $crate::Body::MessageStart { .. }
            | $crate::Body::TextDelta(..)
            | $crate::Body::ThoughtDelta(..)
            | $crate::Body::ThoughtSignature(..)
            | $crate::Body::ToolCallDelta { .. }
            | $crate::Body::ToolCall(..)
    };
}

/// What happens between the start and the end of a tool call, and the decision before it.
#[macro_export]
macro_rules! call_progress {
    () => {
        $crate::Body::Decision { .. }
            | $crate::Body::Approval { .. }
            | $crate::Body::ToolOutput { .. }
            | $crate::Body::ToolDisplay { .. }
    };
}

/// Reports on work that is not part of the conversation.
#[macro_export]
macro_rules! notices {
    () => {
        $crate::Body::Task(..)
            | $crate::Body::RateLimit(..)
            | $crate::Body::Resumed(..)
            | $crate::Body::Console { .. }
            | $crate::Body::Hook(..)
    };
}

/// Notices about the session, and what applications add to it.
#[macro_export]
macro_rules! session_notices {
    () => {
        $crate::Body::Session(..) | $crate::notices!() | $crate::Body::History(..) | $crate::Body::Custom(..)
    };
}

/// Everything that happens inside a turn, apart from errors.
#[macro_export]
macro_rules! turn_steps {
    () => {
        $crate::graph_events!()
            | $crate::message_pieces!()
            | $crate::Body::MessageEnd(..)
            | $crate::call_progress!()
            | $crate::Body::ToolStart(..)
            | $crate::Body::ToolEnd(..)
            | $crate::Body::Thinking(..)
            | $crate::session_notices!()
    };
}

/// Lines of the control channel: questions to the host, and answers to requests that start no turn.
#[macro_export]
macro_rules! channel_events {
    () => {
        $crate::Body::HintResult(..)
            | $crate::Body::Heartbeat(..)
            | $crate::Body::CancelResult(..)
            | $crate::Body::ControlRequest { .. }
            | $crate::Body::ControlReply(..)
            | $crate::Body::ControlCancel { .. }
    };
}

/// The results of slash commands and everything on the control channel.
#[macro_export]
macro_rules! outside_turns {
    () => {
        $crate::Body::CommandResult(..) | $crate::channel_events!()
    };
}
