//! A named pipe between a tool and the test: it says that the tool is there, or holds it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use mock_model::PATIENCE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use tempfile::TempDir;

/// A named pipe; whoever reads it waits until someone writes.
pub struct Fifo {
    path: PathBuf,
    /// Both ends, so that no opening waits and no end comes.
    file: File,
    _home: TempDir,
}

impl Fifo {
    pub fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        Self { path, file, _home: home }
    }

    /// Waits until someone has written something.
    #[track_caller]
    pub fn wait_for_line(&self) {
        let patience = Timespec { tv_sec: i64::try_from(PATIENCE.as_secs()).unwrap(), tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&patience));
        assert_eq!(ready, Ok(1), "nobody wrote to the pipe");
        let _ = (&self.file).read(&mut [0; 256]).unwrap();
    }
}

impl fmt::Display for Fifo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}
