//! Makes git ignore the placeholders of missing names: by a file of ignore patterns that extends the user's own.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use qwen_git::settings::{read_bounded, settings_in};

use crate::process::Environment;

/// Writes the patterns into a directory of ours, which commands can read and not change. Returns the file, or
/// `None` if there is nothing to ignore.
pub(crate) fn write(place: &Path, placeholders: &[PathBuf], env: &Environment) -> Option<PathBuf> {
    let mut patterns = Vec::new();
    for placeholder in placeholders {
        let parent = placeholder.parent()?;
        let Some(root) = parent.ancestors().find(|directory| directory.join(".git").exists()) else {
            continue;
        };
        patterns.extend(b"/");
        push_escaped(&mut patterns, placeholder.strip_prefix(root).ok()?.as_os_str());
        patterns.extend(b"/\n");
    }
    if patterns.is_empty() {
        return None;
    }
    let mut text = users_patterns(env).unwrap_or_default().into_bytes();
    text.push(b'\n');
    text.extend(patterns);
    let file = place.join("git-excludes");
    if fs::read(&file).ok().as_ref() == Some(&text) {
        return Some(file);
    }
    // Replaced as a whole: another command may be reading it.
    let new = place.join(format!("git-excludes.{:016x}", fastrand::u64(..)));
    let mut options = fs::OpenOptions::new();
    let mut open = options.write(true).create_new(true).mode(0o600).open(&new).ok()?;
    open.write_all(&text).and_then(|()| fs::rename(&new, &file)).ok()?;
    Some(file)
}

/// The patterns that git would use: those that the user's settings name, or those at the usual place.
fn users_patterns(env: &Environment) -> Option<String> {
    let home = env.get("HOME").map(Path::new);
    let config = match env.get("XDG_CONFIG_HOME").filter(|value| !value.is_empty()) {
        Some(config) => PathBuf::from(config),
        None => home?.join(".config"),
    };
    let files = [Some(config.join("git/config")), home.map(|home| home.join(".gitconfig"))];
    let settings =
        files.into_iter().flatten().filter_map(|file| settings_in(&file, home, &|_| true)).flatten();
    let named = settings.rev().find(|setting| {
        setting.section == "core" && setting.subsection.is_none() && setting.key == "excludesfile"
    });
    let file = match named.map(|setting| setting.value) {
        Some(value) => match value.strip_prefix("~/") {
            Some(rest) => home?.join(rest),
            None => PathBuf::from(value),
        },
        None => config.join("git/ignore"),
    };
    read_bounded(&file)
}

/// Escapes what has a meaning in a pattern.
fn push_escaped(patterns: &mut Vec<u8>, name: &OsStr) {
    for byte in name.as_bytes() {
        if b"*?[\\ !#".contains(byte) {
            patterns.push(b'\\');
        }
        patterns.push(*byte);
    }
}
