//! Which sessions' lines belong to a process that is alive. The epoch decides who may append; this only answers whether
//! the owner still runs, so that a client can follow a session without taking it over.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use qwen_events::SessionId;

/// The file whose bytes are locked: one byte per session, at a place that derives from its id. The system releases the
/// locks of a process that ends.
const FILE: &str = "owners";

#[derive(Debug)]
pub(super) struct Owners(File);

impl Owners {
    /// Opens the file in the directory of the lines.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        Ok(Self(options.open(directory.join(FILE))?))
    }

    /// Marks this process as the owner of a session's lines. Returns false while another process has the mark.
    pub fn mark(&self, session: &SessionId) -> bool {
        self.lock(libc::F_OFD_SETLK, session, libc::F_WRLCK).is_some()
    }

    /// Removes this process's mark.
    pub fn unmark(&self, session: &SessionId) {
        // Without the mark there is nothing to remove.
        let _ = self.lock(libc::F_OFD_SETLK, session, libc::F_UNLCK);
    }

    /// Returns true if another process that is alive has marked the session.
    pub fn is_marked_elsewhere(&self, session: &SessionId) -> bool {
        let found = self.lock(libc::F_OFD_GETLK, session, libc::F_WRLCK);
        found.is_some_and(|kind| kind != libc::F_UNLCK)
    }

    /// Performs an operation on a session's byte. Returns the kind of lock that the system reports; none if it refused.
    fn lock(&self, operation: libc::c_int, session: &SessionId, kind: libc::c_int) -> Option<libc::c_int> {
        let mut lock = libc::flock {
            l_type: i16::try_from(kind).unwrap_or_default(),
            l_whence: i16::try_from(libc::SEEK_SET).unwrap_or_default(),
            l_start: place_of(session),
            l_len: 1,
            l_pid: 0,
        };
        #[expect(unsafe_code, reason = "locks of open file descriptions have no safe interface")]
        // SAFETY: The descriptor is open, and `lock` is a valid structure that outlives the call.
        let result = unsafe { libc::fcntl(self.0.as_raw_fd(), operation, &raw mut lock) };
        (result == 0).then(|| libc::c_int::from(lock.l_type))
    }
}

/// The byte of a session: a 62-bit FNV-1a hash of its id.
fn place_of(session: &SessionId) -> i64 {
    let hash = session.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash >> 2).cast_signed()
}
