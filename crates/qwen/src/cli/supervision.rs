//! Flags with which a parent process supervises its worker.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

#[derive(Args, Debug, Default, Clone, PartialEq, Eq)]
pub struct Supervision {
    /// Ask the parent process on this socket (or READ,WRITE pipes) to commit the session's log before effects
    #[arg(long, value_name = "FD", value_parser = descriptors, allow_hyphen_values = true, hide = true)]
    pub commit_fd: Option<CommitDescriptors>,

    /// Start no tool and no model call while the parent process has been silent for this many seconds
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_hyphen_values = true, hide = true)]
    pub leash: Option<Duration>,

    /// How many seconds a question to the host may stay open
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_hyphen_values = true, hide = true)]
    pub question_timeout: Option<Duration>,

    /// Hide this directory from commands; may be given several times
    #[arg(long, value_name = "DIR", hide = true)]
    pub private_dir: Vec<PathBuf>,

    /// Show this directory inside a hidden one; may be given several times
    #[arg(long, value_name = "DIR", hide = true)]
    pub visible_dir: Vec<PathBuf>,
}

impl Supervision {
    /// True for a worker that a parent process supervises, such as one of a hub.
    pub fn is_active(&self) -> bool {
        self.leash.is_some() || self.commit_fd.is_some()
    }
}

/// The descriptors of `--commit-fd`; one socket is both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitDescriptors {
    pub read: i32,
    pub write: i32,
}

/// Parses one socket as `N`, or two pipes as `READ,WRITE`. Standard streams are in use already.
pub fn descriptors(text: &str) -> Result<CommitDescriptors, String> {
    let number = |text: &str| text.trim().parse::<i32>().ok().filter(|number| *number > 2);
    let (read, write) = text.split_once(',').unwrap_or((text, text));
    match (number(read), number(write)) {
        (Some(read), Some(write)) => Ok(CommitDescriptors { read, write }),
        _ => Err("give the number of an open socket from 3 on, or of two pipes as READ,WRITE".to_owned()),
    }
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|leash| !leash.is_zero()).ok_or_else(|| "give a number of seconds above 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_a_socket_and_two_are_pipes() {
        assert_eq!(descriptors("7"), Ok(CommitDescriptors { read: 7, write: 7 }));
        assert_eq!(descriptors("7,9"), Ok(CommitDescriptors { read: 7, write: 9 }));
        for text in ["", "2", "-1", "x", "7,", "7,1", "7,8,9"] {
            assert!(descriptors(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_leash_is_longer_than_nothing() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["0", "-1", "x", "", "NaN", "1e400"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
