//! `qwen sessions` and its flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `qwen sessions`
#[derive(Subcommand, Debug)]
pub enum SessionsAction {
    /// List the sessions of this directory, the latest first
    List(ListArgs),
    /// Show a session as text
    Show {
        /// The session
        id: String,
    },
    /// Write the stream of a session in any dialect
    Export {
        /// The session
        id: String,
        /// The dialect: qwen, claude, claude-lite, loom, loom-export, core or acp; or atif for one document of
        /// the Agent Trajectory Interchange Format
        #[arg(long, default_value = "qwen")]
        dialect: String,
        /// Write one HTML file that shows the session, with a slider, to FILE or to standard output
        #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", conflicts_with = "dialect")]
        html: Option<PathBuf>,
    },
    /// Write the stream of a session at its original pace
    Replay {
        /// The session
        id: String,
        /// The dialect: qwen, claude, claude-lite, loom, loom-export or core
        #[arg(long, default_value = "qwen")]
        dialect: String,
        /// Replay this many times faster
        #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
        speed: f64,
        /// Write only the terminal record of the last turn; nothing if that turn has not ended
        #[arg(long)]
        end: bool,
        /// Write stream-json or stream-chunk-json
        #[arg(long, default_value = "stream-json", value_name = "FORMAT", value_parser = ["stream-json", "stream-chunk-json"])]
        output_format: String,
        /// Replay what a hub with the same --record-dir recorded, in the recorded dialect
        #[arg(long, value_name = "DIR", conflicts_with = "dialect")]
        record_dir: Option<PathBuf>,
        /// With --record-dir: include the client's lines, each with direction and time
        #[arg(long, requires = "record_dir")]
        both: bool,
    },
    /// Delete sessions by id, or all that are old, too many or too large together
    Delete(DeleteArgs),
    /// List the points of a session from which it can be resumed or forked
    Checkpoints {
        /// The session
        id: String,
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Create a new session from an earlier point of another one, optionally with an edited state
    Fork(ForkArgs),
    /// Delete old checkpoints to free space; keeps the latest ones and those that forks started from
    Prune {
        /// The session; all sessions if omitted
        id: Option<String>,
        /// How many of the latest checkpoints are kept
        #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        keep: u32,
        /// Only print what would be deleted
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
    /// The id of the session
    pub id: String,
    /// The message, prompt or checkpoint to fork at; the end if omitted
    #[arg(long, value_name = "POINT")]
    pub at: Option<String>,
    /// Change the state at that point: a key, with dots for nested keys, and a JSON value
    /// ('thoughts.0.score=0.9')
    #[arg(long, value_name = "KEY=JSON")]
    pub set: Vec<String>,
    /// The id of the new session
    #[arg(long, value_name = "ID")]
    pub session_id: Option<String>,
}
