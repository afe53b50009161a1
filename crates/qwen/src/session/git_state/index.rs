//! Changes of tracked files, found by comparing the index with the work tree.

use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::objects::ObjectId;
use super::{clean, open_file};

/// The maximum size of an index that is read.
const MAX_INDEX: u64 = 1 << 20;
/// The maximum number of files that are compared.
const MAX_FILES: u32 = 4000;
/// The maximum number and size of files whose content is compared.
const MAX_HASHED: usize = 32;
const MAX_HASHED_SIZE: u64 = 1 << 20;
/// The maximum number of changed files that are named.
const MAX_NAMED: usize = 5;

/// The flags of an entry that git does not compare.
const ASSUME_VALID: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const SKIP_WORKTREE: u16 = 0x4000;

/// The tracked files that differ from the index, bounded; the first is a remark if changes are staged against
/// `tree`, the tree of HEAD. `None` if the index is too large or not understood.
pub fn changed_files(index: &Path, root: &Path, tree: Option<ObjectId>) -> Option<Vec<String>> {
    let mut bytes = Vec::new();
    open_file(index)?.take(MAX_INDEX + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_INDEX {
        return None;
    }
    let mut reader = IndexReader { bytes: &bytes, at: 12, version: be32(&bytes, 4)?, path: Vec::new() };
    let count = be32(&bytes, 8)?;
    if !bytes.starts_with(b"DIRC") || !(2..=4).contains(&reader.version) || count > MAX_FILES {
        return None;
    }
    let (mut changed, mut hashed) = (Vec::new(), 0);
    for _ in 0..count {
        let entry = reader.next_entry()?;
        if entry.is_compared && entry.has_changed(root, &mut hashed)? {
            changed.push(clean(&String::from_utf8_lossy(&entry.path)));
        }
    }
    if reader.cached_tree().is_some_and(|cached| tree.is_none() || cached != tree) {
        changed.insert(0, "(staged changes)".to_owned());
    }
    let more = changed.len().saturating_sub(MAX_NAMED);
    changed.truncate(MAX_NAMED);
    if more > 0 {
        changed.push(format!("and {more} more"));
    }
    Some(changed)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

struct IndexReader<'a> {
    bytes: &'a [u8],
    at: usize,
    version: u32,
    /// The path of the previous entry; version 4 stores differences.
    path: Vec<u8>,
}

struct Entry {
    seconds: u32,
    nanoseconds: u32,
    mode: u32,
    size: u32,
    id: [u8; 20],
    is_compared: bool,
    path: Vec<u8>,
}

impl IndexReader<'_> {
    fn next_entry(&mut self) -> Option<Entry> {
        const FIXED: usize = 62;
        let start = self.at;
        let field = |at: usize| be32(self.bytes, start + at);
        let flags = u16::from_be_bytes(self.bytes.get(start + 60..start + FIXED)?.try_into().ok()?);
        let mut at = start + FIXED;
        let mut is_compared = flags & ASSUME_VALID == 0;
        if self.version >= 3 && flags & EXTENDED != 0 {
            let more = u16::from_be_bytes(self.bytes.get(at..at + 2)?.try_into().ok()?);
            is_compared &= more & SKIP_WORKTREE == 0;
            at += 2;
        }
        if self.version == 4 {
            let mut byte = *self.bytes.get(at)?;
            at += 1;
            let mut removed = usize::from(byte & 0x7f);
            while byte & 0x80 != 0 {
                byte = *self.bytes.get(at)?;
                at += 1;
                removed = removed.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
            }
            self.path.truncate(self.path.len().checked_sub(removed)?);
        } else {
            self.path.clear();
        }
        let length = self.bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
        self.path.extend_from_slice(&self.bytes[at..at + length]);
        let end = at + length + 1;
        self.at = if self.version == 4 { end } else { start + (end - start).next_multiple_of(8) };
        let mode = field(24)?;
        Some(Entry {
            seconds: field(8)?,
            nanoseconds: field(12)?,
            mode,
            size: field(36)?,
            id: self.bytes.get(start + 40..start + 60)?.try_into().ok()?,
            // A submodule is a separate repository.
            is_compared: is_compared && mode != 0o160_000,
            path: self.path.clone(),
        })
    }

    /// The tree that the index would be committed as: `Some(None)` if it differs from every known tree, `None`
    /// if the index does not store it.
    #[expect(clippy::option_option, reason = "an index may store no tree, or an invalid one")]
    fn cached_tree(&self) -> Option<Option<ObjectId>> {
        let mut at = self.at;
        loop {
            let (name, size) = (self.bytes.get(at..at + 4)?, be32(self.bytes, at + 4)? as usize);
            let data = self.bytes.get(at + 8..(at + 8).checked_add(size)?)?;
            if name == b"TREE" {
                let path_end = data.iter().position(|byte| *byte == 0)?;
                let line_end = path_end + data[path_end..].iter().position(|byte| *byte == b'\n')?;
                if data.get(path_end + 1) == Some(&b'-') {
                    return Some(None);
                }
                return Some(Some(ObjectId::new(data.get(line_end + 1..line_end + 21)?.try_into().ok()?)));
            }
            at += 8 + size;
        }
    }
}

impl Entry {
    /// True if the file in the work tree differs; `None` if that would cost too much to find out.
    fn has_changed(&self, root: &Path, hashed: &mut usize) -> Option<bool> {
        use std::os::unix::ffi::OsStrExt;
        let path = root.join(std::ffi::OsStr::from_bytes(&self.path));
        let Ok(found) = path.symlink_metadata() else { return Some(true) };
        let is_link = self.mode & 0o170_000 == 0o120_000;
        if found.is_symlink() != is_link || !(found.is_file() || is_link) {
            return Some(true);
        }
        let is_executable = found.mode() & 0o100 != 0;
        if !is_link && is_executable != (self.mode & 0o100 != 0) {
            return Some(true);
        }
        if self.matches(&found) {
            return Some(false);
        }
        if found.len() != u64::from(self.size) && self.size != 0 {
            return Some(true);
        }
        *hashed += 1;
        if *hashed > MAX_HASHED || found.len() > MAX_HASHED_SIZE {
            return None;
        }
        let content = if is_link {
            std::fs::read_link(&path).ok()?.into_os_string().as_encoded_bytes().to_vec()
        } else {
            let mut content = Vec::new();
            open_file(&path)?.take(MAX_HASHED_SIZE + 1).read_to_end(&mut content).ok()?;
            content
        };
        Some(blob_id(&content) != self.id)
    }

    fn matches(&self, found: &Metadata) -> bool {
        let same_time = found.mtime() == i64::from(self.seconds)
            && (self.nanoseconds == 0 || found.mtime_nsec() == i64::from(self.nanoseconds));
        same_time && found.len() == u64::from(self.size)
    }
}

/// The name that git gives a file's content: SHA-1 of a header and the content.
fn blob_id(content: &[u8]) -> [u8; 20] {
    let mut message = format!("blob {}\0", content.len()).into_bytes();
    message.extend_from_slice(content);
    sha1(message)
}

#[expect(clippy::many_single_char_names, reason = "the names of the algorithm's registers")]
fn sha1(mut message: Vec<u8>) -> [u8; 20] {
    let bits = (message.len() as u64).wrapping_mul(8);
    message.push(0x80);
    message.resize((message.len() + 8).next_multiple_of(64) - 8, 0);
    message.extend_from_slice(&bits.to_be_bytes());
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in message.chunks_exact(64) {
        let mut words = [0_u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for n in 16..80 {
            words[n] = (words[n - 3] ^ words[n - 8] ^ words[n - 14] ^ words[n - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (n, word) in words.iter().enumerate() {
            let (mixed, constant) = match n / 20 {
                0 => (b & c | !b & d, 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let next = a
                .rotate_left(5)
                .wrapping_add(mixed)
                .wrapping_add(e)
                .wrapping_add(constant)
                .wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (sum, value) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(value);
        }
    }
    let mut id = [0; 20];
    for (bytes, word) in id.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_have_the_names_that_git_gives_them() {
        let hex = |id: [u8; 20]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(blob_id(b"")), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(hex(blob_id(b"hello\n")), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(hex(sha1(vec![b'a'; 119])), "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56");
    }
}
