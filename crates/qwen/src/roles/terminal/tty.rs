//! The terminal device: modes, size, reads and writes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use super::modes;

/// The fallback size if the terminal does not report one.
const COLUMNS: usize = 80;
const ROWS: usize = 24;

pub struct Tty {
    fd: OwnedFd,
    before: Termios,
}

/// Input that was not read before the terminal is taken over.
#[derive(Clone, Copy)]
pub enum PendingInput {
    /// The user typed it while the program started.
    Kept,
    /// It was meant for another program, such as a terminal's late answer to an editor.
    Discarded,
}

impl PendingInput {
    fn action(self) -> OptionalActions {
        match self {
            Self::Kept => OptionalActions::Now,
            Self::Discarded => OptionalActions::Flush,
        }
    }
}

impl Tty {
    /// Opens the terminal on standard input with a separate file description, so that the shell's stays
    /// blocking.
    pub fn open() -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = match rustix::fs::open("/proc/self/fd/0", flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(_) => rustix::fs::open("/dev/tty", flags, Mode::empty())?,
        };
        let before = tcgetattr(&fd)?;
        Ok(Self { fd, before })
    }

    /// Switches the terminal to raw input and the modes that the interface uses. `pending` selects what
    /// happens to input that was not read yet.
    pub fn enter(&self, pending: PendingInput) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        raw.local_modes.remove(LocalModes::TOSTOP);
        tcsetattr(&self.fd, pending.action(), &raw)?;
        modes::entered(&self.fd, &self.before, true);
        Ok(())
    }

    /// Takes over the terminal in line mode: the kernel edits and echoes. Ctrl+C and Ctrl+Z end a line
    /// instead of sending signals, so that they mean the same as elsewhere in the interface.
    pub fn enter_lines(&self, pending: PendingInput) -> io::Result<()> {
        let mut lines = self.before.clone();
        lines.local_modes.remove(LocalModes::ISIG | LocalModes::TOSTOP);
        lines.local_modes.insert(LocalModes::ICANON | LocalModes::ECHO);
        lines.special_codes[SpecialCodeIndex::VEOL] = 0x03;
        lines.special_codes[SpecialCodeIndex::VEOL2] = 0x1a;
        tcsetattr(&self.fd, pending.action(), &lines)?;
        modes::entered(&self.fd, &self.before, false);
        Ok(())
    }

    /// Returns the size in columns and rows.
    pub fn size(&self) -> (usize, usize) {
        let size = tcgetwinsize(&self.fd).ok();
        let given = |count: u16, otherwise| if count == 0 { otherwise } else { usize::from(count) };
        size.map_or((COLUMNS, ROWS), |size| (given(size.ws_col, COLUMNS), given(size.ws_row, ROWS)))
    }

    /// Reads the available bytes, which may be none. An error means that the terminal has disappeared.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.fd, buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => Ok(Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes as many bytes as the terminal accepts now.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(&self.fd, bytes) {
            Ok(count) => Ok(count),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Tty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
