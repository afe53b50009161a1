//! `qwen sessions` and its flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `qwen sessions`
#[derive(Subcommand, Debug)]
pub enum SessionsAction {
    /// List the sessions of this directory, the latest first
    List(ListArgs),
    /// Show a session to a person
    Show {
        /// The session
        id: String,
    },
    /// Write the stream of a session
    Export {
        /// The session
        id: String,
        /// The wire: qwen, claude, claude-lite, loom, loom-export or core
        #[arg(long, default_value = "qwen")]
        dialect: String,
    },
    /// Write the stream of a session at the pace at which it happened
    Replay {
        /// The session
        id: String,
        /// The wire: qwen, claude, claude-lite, loom, loom-export or core
        #[arg(long, default_value = "qwen")]
        dialect: String,
        /// How many times faster
        #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
        speed: f64,
        /// Only the terminal record of the last turn; nothing while that turn has not ended
        #[arg(long)]
        end: bool,
        /// Play back what a hub with the same --record-dir recorded, in the wire that was recorded
        #[arg(long, value_name = "DIR", conflicts_with = "dialect")]
        record_dir: Option<PathBuf>,
        /// With --record-dir: what the client sent too, each line with its direction and time
        #[arg(long, requires = "record_dir")]
        both: bool,
    },
    /// Delete sessions by id, or all that are old, too many or too large together
    Delete(DeleteArgs),
    /// List the places in a session that one can go back to
    Checkpoints {
        /// The session
        id: String,
        /// As one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Make a new session out of an old one up to a place in it, perhaps with an edited state
    Fork(ForkArgs),
    /// Give back the room of old checkpoints; the latest and those that forks began at stay
    Prune {
        /// The session; all without it
        id: Option<String>,
        /// How many of the latest checkpoints stay
        #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        keep: u32,
        /// Only say what would happen
        #[arg(long)]
        dry_run: bool,
    },
}

/// `qwen sessions list`
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
    /// The sessions of all directories
    #[arg(long)]
    pub all: bool,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
    /// Only sessions whose id or first prompt contains this text
    #[arg(long, value_name = "WORD")]
    pub search: Option<String>,
}

/// `qwen sessions delete`
#[derive(Args, Debug)]
pub struct DeleteArgs {
    /// The sessions: their ids, or the beginning of one
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Delete sessions without activity for this many days
    #[arg(long, value_name = "DAYS", conflicts_with = "ids")]
    pub older_than: Option<u64>,
    /// Keep this many of the latest sessions and delete the others
    #[arg(long, value_name = "N", conflicts_with = "ids")]
    pub keep: Option<usize>,
    /// Keep the latest sessions up to this size together and delete the others
    #[arg(long, value_name = "MIB", conflicts_with = "ids")]
    pub max_size: Option<u64>,
    /// Only print what would be deleted
    #[arg(long)]
    pub dry_run: bool,
}

/// `qwen sessions fork`
#[derive(Args, Debug)]
pub struct ForkArgs {
    /// The session
    pub id: String,
    /// The message, prompt or checkpoint up to which it is taken over; its end without it
    #[arg(long, value_name = "POINT")]
    pub at: Option<String>,
    /// Change the state there: a key, or keys with dots between them, and a JSON value ('thoughts.0.score=0.9')
    #[arg(long, value_name = "KEY=JSON")]
    pub set: Vec<String>,
    /// The new session's name
    #[arg(long, value_name = "ID")]
    pub session_id: Option<String>,
}
