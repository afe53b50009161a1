//! Commits of the object database, loose or packed.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use flate2::read::ZlibDecoder;

use super::open_file;

/// The maximum size of a commit that is read.
const MAX_OBJECT: usize = 64 * 1024;
/// The maximum number of packs that are searched.
const MAX_PACKS: usize = 64;
/// The maximum length of a chain of deltas.
const MAX_DELTAS: usize = 64;
/// The type of a commit in a pack.
const COMMIT: u8 = 1;

/// The SHA-1 name of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectId([u8; 20]);

impl ObjectId {
    /// Reads 40 hexadecimal digits at the start of a text.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.split(char::is_whitespace).next().filter(|digits| digits.len() == 40)?;
        let mut id = [0; 20];
        for (byte, pair) in id.iter_mut().zip(digits.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(id))
    }

    pub fn new(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The first seven digits.
    pub fn short(&self) -> String {
        self.hex().chars().take(7).collect()
    }
}

/// The object database of a repository.
pub struct Objects {
    directory: PathBuf,
}

impl Objects {
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The text of a commit; `None` if it is missing or too large.
    pub fn read_commit(&self, id: &ObjectId) -> Option<String> {
        let bytes = match self.read_loose(id) {
            Some(bytes) => bytes,
            None => self.read_packed(id)?,
        };
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn read_loose(&self, id: &ObjectId) -> Option<Vec<u8>> {
        let hex = id.hex();
        let file = open_file(&self.directory.join(&hex[..2]).join(&hex[2..]))?;
        let bytes = inflate(file)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        bytes.starts_with(b"commit ").then(|| bytes[end + 1..].to_vec())
    }

    fn read_packed(&self, id: &ObjectId) -> Option<Vec<u8>> {
        let packs = std::fs::read_dir(self.directory.join("pack")).ok()?.take(4 * MAX_PACKS).flatten();
        let indexes =
            packs.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "idx"));
        indexes.take(MAX_PACKS).find_map(|path| {
            let index = open_file(&path)?;
            let offset = find_offset(&index, id)?;
            let pack = open_file(&path.with_extension("pack"))?;
            let (kind, bytes) = read_entry(&pack, &index, offset, 0)?;
            (kind == COMMIT).then_some(bytes)
        })
    }
}

fn inflate(from: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(from).take(MAX_OBJECT as u64 + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() <= MAX_OBJECT).then_some(bytes)
}

fn read_u32(file: &File, at: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(u32::from_be_bytes(bytes))
}

/// The position of an object in the pack of a version 2 index.
fn find_offset(index: &File, id: &ObjectId) -> Option<u64> {
    const FANOUT: u64 = 8;
    const IDS: u64 = FANOUT + 256 * 4;
    if read_u32(index, 0)? != 0xff74_4f63 || read_u32(index, 4)? != 2 {
        return None;
    }
    let first = id.0[0];
    let count = u64::from(read_u32(index, FANOUT + 255 * 4)?);
    let mut low = match first {
        0 => 0,
        first => u64::from(read_u32(index, FANOUT + (u64::from(first) - 1) * 4)?),
    };
    let mut high = u64::from(read_u32(index, FANOUT + u64::from(first) * 4)?);
    while low < high {
        let middle = low + (high - low) / 2;
        let mut known = [0; 20];
        index.read_exact_at(&mut known, IDS + middle * 20).ok()?;
        match known.cmp(&id.0) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => {
                let offsets = IDS + count * 24;
                let offset = read_u32(index, offsets + middle * 4)?;
                if offset & 0x8000_0000 == 0 {
                    return Some(u64::from(offset));
                }
                let large = offsets + count * 4 + u64::from(offset & 0x7fff_ffff) * 8;
                return Some(
                    u64::from(read_u32(index, large)?) << 32 | u64::from(read_u32(index, large + 4)?),
                );
            }
        }
    }
    None
}

/// Reads from a pack at a position.
struct PackReader<'a> {
    pack: &'a File,
    at: u64,
}

impl Read for PackReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.pack.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl PackReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        self.read_exact(&mut byte).ok()?;
        Some(byte[0])
    }
}

/// The type and content of the entry at a position. Deltas are applied.
fn read_entry(pack: &File, index: &File, offset: u64, depth: usize) -> Option<(u8, Vec<u8>)> {
    if depth > MAX_DELTAS {
        return None;
    }
    let mut reader = PackReader { pack, at: offset };
    let mut byte = reader.byte()?;
    let kind = byte >> 4 & 7;
    while byte & 0x80 != 0 {
        byte = reader.byte()?;
    }
    let base = match kind {
        6 => {
            let mut byte = reader.byte()?;
            let mut distance = u64::from(byte & 0x7f);
            while byte & 0x80 != 0 {
                byte = reader.byte()?;
                distance = distance.checked_add(1)?.checked_mul(128)? | u64::from(byte & 0x7f);
            }
            offset.checked_sub(distance)?
        }
        7 => {
            let mut id = [0; 20];
            reader.read_exact(&mut id).ok()?;
            find_offset(index, &ObjectId(id))?
        }
        _ => return Some((kind, inflate(reader)?)),
    };
    let delta = inflate(reader)?;
    let (kind, base) = read_entry(pack, index, base, depth + 1)?;
    Some((kind, apply_delta(&base, &delta)?))
}

fn apply_delta(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = delta.iter().copied();
    for _ in 0..2 {
        // The sizes of base and result.
        while bytes.next()? & 0x80 != 0 {}
    }
    let mut result = Vec::new();
    while let Some(operation) = bytes.next() {
        if operation & 0x80 == 0 {
            for _ in 0..operation {
                result.push(bytes.next()?);
            }
            continue;
        }
        let mut number = |shift: u8, count: u32| {
            (0..count).try_fold(0_usize, |sum, n| {
                let is_present = operation >> (u32::from(shift) + n) & 1 == 1;
                Some(sum | if is_present { usize::from(bytes.next()?) << (8 * n) } else { 0 })
            })
        };
        let (at, size) = (number(0, 4)?, number(4, 3)?);
        let size = if size == 0 { 0x10000 } else { size };
        result.extend_from_slice(base.get(at..at.checked_add(size)?)?);
        if result.len() > MAX_OBJECT {
            return None;
        }
    }
    Some(result)
}
