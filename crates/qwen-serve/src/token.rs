//! The two tokens: one for everything, one for watching.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::options::ServeError;

/// The minimum length of a token that the user supplies.
const MIN_LENGTH: usize = 32;

/// The maximum length of a token file that is read.
const MAX_FILE: u64 = 4096;

/// What a request may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everything, including prompts and approvals.
    Full,
    /// Reading sessions and their events.
    Watch,
}

/// The tokens of this server.
#[derive(Debug)]
pub struct Tokens {
    full: String,
    watch: String,
    /// True if the full token was created by this start.
    pub is_new: bool,
}

impl Tokens {
    /// Reads the tokens in `directory`, or creates them. `given` is a token from the environment.
    pub fn load(directory: &Path, replace: bool, given: Option<&str>) -> Result<Self, ServeError> {
        let failed = |error: io::Error| {
            ServeError(format!(
                "The tokens in {} cannot be used: {error}. Correct the directory, or use another QWEN_HOME.",
                directory.display()
            ))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let (stored, is_new) = stored_token(&directory.join("token"), replace).map_err(failed)?;
        let (watch, _) = stored_token(&directory.join("watch-token"), replace).map_err(failed)?;
        let full = match given {
            Some(given) if given.len() < MIN_LENGTH || !given.bytes().all(|byte| byte.is_ascii_graphic()) => {
                return Err(ServeError(format!(
                    "QWEN_SERVER_TOKEN cannot be used: a token has at least {MIN_LENGTH} printable characters without spaces. Unset it to use a generated one."
                )));
            }
            Some(given) => given.to_owned(),
            None => stored,
        };
        Ok(Self { full, watch, is_new: is_new && given.is_none() })
    }

    /// The token for everything.
    pub fn full(&self) -> &str {
        &self.full
    }

    /// What the bearer of a token may do. The time does not depend on how much of it is right.
    pub fn access(&self, presented: &[u8]) -> Option<Access> {
        let is_full = is_equal(self.full.as_bytes(), presented);
        let is_watch = is_equal(self.watch.as_bytes(), presented);
        match (is_full, is_watch) {
            (true, _) => Some(Access::Full),
            (false, true) => Some(Access::Watch),
            (false, false) => None,
        }
    }
}

/// Compares in a time that depends only on the length of `presented`.
fn is_equal(token: &[u8], presented: &[u8]) -> bool {
    let mut difference = u8::from(token.len() != presented.len());
    for (at, byte) in presented.iter().enumerate() {
        difference |= std::hint::black_box(byte ^ token[at % token.len()]);
    }
    std::hint::black_box(difference) == 0
}

/// The token in a file and whether it was created now.
fn stored_token(path: &Path, replace: bool) -> io::Result<(String, bool)> {
    if replace {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    match OpenOptions::new().read(true).custom_flags(no_follow).open(path) {
        Ok(file) => Ok((read_token(file, path)?, false)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = random_text()?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(format!("{token}\n").as_bytes())?;
            Ok((token, true))
        }
        Err(error) => Err(error),
    }
}

fn read_token(file: File, path: &Path) -> io::Result<String> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.mode() & 0o077 != 0 {
        let message = format!("{} must be a file that only its owner can read (chmod 600)", path.display());
        return Err(io::Error::other(message));
    }
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text)?;
    let token = text.trim();
    if token.len() < MIN_LENGTH || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(io::Error::other(format!("{} has no token; --new-token replaces it", path.display())));
    }
    Ok(token.to_owned())
}

/// 256 random bits as text.
fn random_text() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    fill_random(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A random number that cannot be guessed.
pub fn random_id() -> io::Result<u128> {
    let mut bytes = [0_u8; 16];
    fill_random(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}

fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_kept_private_and_survives_a_restart() {
        let home = tempfile::tempdir().unwrap();
        let first = Tokens::load(home.path(), false, None).unwrap();
        assert!(first.is_new && first.full().len() == 64);
        let mode = std::fs::metadata(home.path().join("token")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = Tokens::load(home.path(), false, None).unwrap();
        assert!(!second.is_new && second.full() == first.full());
        let third = Tokens::load(home.path(), true, None).unwrap();
        assert_ne!(third.full(), first.full());
    }

    #[test]
    fn only_the_whole_token_grants_access() {
        let home = tempfile::tempdir().unwrap();
        let tokens = Tokens::load(home.path(), false, Some(&"t".repeat(40))).unwrap();
        assert_eq!(tokens.access("t".repeat(40).as_bytes()), Some(Access::Full));
        for wrong in [String::new(), "t".repeat(39), "t".repeat(41), "t".repeat(80), "u".repeat(40)] {
            assert_eq!(tokens.access(wrong.as_bytes()), None, "{wrong}");
        }
        let watch = std::fs::read_to_string(home.path().join("watch-token")).unwrap();
        assert_eq!(tokens.access(watch.trim().as_bytes()), Some(Access::Watch));
        assert!(Tokens::load(home.path(), false, Some("short")).is_err());
    }

    #[test]
    fn a_token_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        Tokens::load(home.path(), false, None).unwrap();
        let path = home.path().join("token");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Tokens::load(home.path(), false, None).is_err());
    }
}
