//! A named pipe between a tool and the test: it says that the tool is there, or holds it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use mock_model::WAIT_LIMIT;
use mock_model::process::Program;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};

/// A named pipe; whoever reads it waits until someone writes.
pub struct Fifo {
    path: PathBuf,
    /// Both ends, so that no opening waits and no end comes.
    file: File,
}

impl Fifo {
    /// A pipe called `name` in the directory where the program works, which is where its tools may write.
    pub fn new(program: &Program, name: &str) -> Self {
        let path = program.cwd_path().join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        Self { path, file }
    }

    /// Waits until someone has written something.
    #[track_caller]
    pub fn wait_for_line(&self) {
        let patience = Timespec { tv_sec: i64::try_from(WAIT_LIMIT.as_secs()).unwrap(), tv_nsec: 0 };
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
