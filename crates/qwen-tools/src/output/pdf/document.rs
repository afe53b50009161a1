//! The objects of a PDF file, its streams and its pages.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;

use flate2::read::ZlibDecoder;

use super::object::{Dictionary, Object, Reader, decode_hexadecimal};

/// Most objects that are read.
const MAX_OBJECTS: usize = 200_000;
/// Most bytes that all streams may have together once they are decoded.
const MAX_DECODED: usize = 64 * 1024 * 1024;
/// Most pages that are read.
const MAX_PAGES: usize = 5_000;
/// How deeply the tree of pages may be nested.
const MAX_DEPTH: usize = 64;

/// The objects of a file by their numbers. They are found by their keywords: the table of their positions is often
/// damaged, and this reader needs most of them anyway.
pub(super) struct Document<'a> {
    bytes: &'a [u8],
    objects: BTreeMap<u32, Stored>,
    /// Bytes that streams may still have.
    room: usize,
    pub is_encrypted: bool,
}

struct Stored {
    object: Object,
    /// Where the data of a stream begins.
    data: Option<usize>,
}

/// A page, with what it inherits.
pub(super) struct Page {
    pub contents: Vec<u32>,
    pub resources: Option<Object>,
}

impl<'a> Document<'a> {
    pub fn read(bytes: &'a [u8]) -> Self {
        let mut document = Self { bytes, objects: BTreeMap::new(), room: MAX_DECODED, is_encrypted: false };
        for at in positions(bytes, b"obj") {
            let Some(number) = object_number(bytes, at) else { continue };
            if document.objects.len() == MAX_OBJECTS {
                break;
            }
            let mut reader = Reader::new(bytes, at + 3);
            let Some(object) = reader.next() else { continue };
            reader.skip_space();
            let is_stream = bytes.get(reader.at..).is_some_and(|rest| rest.starts_with(b"stream"));
            document.objects.insert(number, Stored { object, data: is_stream.then_some(reader.at + 6) });
        }
        document.is_encrypted = document.has_encryption();
        document.read_object_streams();
        document
    }

    /// True if the trailer names a key: strings and streams are encrypted.
    fn has_encryption(&self) -> bool {
        let in_trailer = |at: usize| {
            let trailer = Reader::new(self.bytes, at + 7).next();
            trailer
                .as_ref()
                .and_then(Object::dictionary)
                .is_some_and(|entries| entries.contains_key(&b"Encrypt"[..]))
        };
        let is_reference_stream = |stored: &Stored| {
            self.entry(&stored.object, b"Type").and_then(Object::name) == Some(b"XRef")
                && self.entry(&stored.object, b"Encrypt").is_some()
        };
        positions(self.bytes, b"trailer").into_iter().any(in_trailer)
            || self.objects.values().any(is_reference_stream)
    }

    /// Reads the objects that are stored inside streams.
    fn read_object_streams(&mut self) {
        let is_container =
            |stored: &Stored| self.entry(&stored.object, b"Type").and_then(Object::name) == Some(b"ObjStm");
        let containers: Vec<u32> = self
            .objects
            .iter()
            .filter(|(_, stored)| is_container(stored))
            .map(|(number, _)| *number)
            .collect();
        for container in containers {
            let Some(first) = self.get(container).and_then(|object| self.integer(object, b"First")) else {
                continue;
            };
            let Some(data) = self.stream(container) else { continue };
            let mut header = Reader::new(&data, 0);
            while header.at < first && self.objects.len() < MAX_OBJECTS {
                let (Some(Object::Number(number)), Some(Object::Number(offset))) =
                    (header.next(), header.next())
                else {
                    break;
                };
                let (Some(number), Some(offset)) = (to_index(number), to_index(offset)) else { break };
                let object = Reader::new(&data, first.saturating_add(offset)).next();
                if let (Ok(number), Some(object)) = (u32::try_from(number), object) {
                    self.objects.entry(number).or_insert(Stored { object, data: None });
                }
            }
        }
    }

    pub fn get(&self, number: u32) -> Option<&Object> {
        self.objects.get(&number).map(|stored| &stored.object)
    }

    /// The object that a reference names, or the object itself.
    pub fn resolve<'b>(&'b self, object: &'b Object) -> Option<&'b Object> {
        match object {
            Object::Reference(number) => self.get(*number),
            other => Some(other),
        }
    }

    /// The value of a key, with references resolved.
    pub fn entry<'b>(&'b self, object: &'b Object, key: &[u8]) -> Option<&'b Object> {
        self.resolve(self.resolve(object)?.dictionary()?.get(key)?)
    }

    fn integer(&self, object: &Object, key: &[u8]) -> Option<usize> {
        to_index(self.entry(object, key)?.number()?)
    }

    /// The decoded data of a stream; none for other objects and for encodings of images.
    pub fn stream(&mut self, number: u32) -> Option<Vec<u8>> {
        let stored = self.objects.get(&number)?;
        let mut start = stored.data?;
        start += match self.bytes.get(start..)? {
            [b'\r', b'\n', ..] => 2,
            [b'\n' | b'\r', ..] => 1,
            _ => 0,
        };
        let data = self.bytes.get(start..)?;
        let given = self.integer(&stored.object, b"Length").filter(|length| {
            data.get(*length..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b"endstream"))
        });
        let end = given.or_else(|| positions(data, b"endstream").first().copied()).unwrap_or(data.len());
        let filters: Vec<Vec<u8>> = match self.entry(&stored.object, b"Filter") {
            None => Vec::new(),
            Some(Object::Name(name)) => vec![name.clone()],
            Some(Object::Array(names)) => {
                names.iter().filter_map(|name| self.resolve(name)?.name().map(<[u8]>::to_vec)).collect()
            }
            Some(_) => return None,
        };
        let mut decoded = data[..end].to_vec();
        for filter in filters {
            decoded = match &filter[..] {
                b"FlateDecode" | b"Fl" => inflate(&decoded, self.room),
                b"ASCIIHexDecode" | b"AHx" => decode_hexadecimal(&decoded),
                b"ASCII85Decode" | b"A85" => decode_base85(&decoded),
                _ => return None,
            };
        }
        decoded.truncate(self.room);
        self.room -= decoded.len();
        Some(decoded)
    }

    /// The pages in their order.
    pub fn pages(&self) -> Vec<Page> {
        let is =
            |object: &Object, kind: &[u8]| self.entry(object, b"Type").and_then(Object::name) == Some(kind);
        let mut pages = Vec::new();
        let mut seen = HashSet::new();
        let catalogue = self.objects.values().rev().find(|stored| is(&stored.object, b"Catalog"));
        if let Some(Object::Reference(root)) =
            catalogue.and_then(|stored| stored.object.dictionary()?.get(&b"Pages"[..]))
        {
            self.collect_pages((*root, 0), None, &mut seen, &mut pages);
        }
        if pages.is_empty() {
            let all = self.objects.values().filter(|stored| is(&stored.object, b"Page"));
            pages.extend(all.take(MAX_PAGES).map(|stored| self.page(&stored.object, None)));
        }
        pages
    }

    fn collect_pages(
        &self,
        (node, depth): (u32, usize),
        inherited: Option<&Object>,
        seen: &mut HashSet<u32>,
        pages: &mut Vec<Page>,
    ) {
        if pages.len() == MAX_PAGES || depth == MAX_DEPTH || !seen.insert(node) {
            return;
        }
        let Some(object) = self.get(node) else { return };
        let resources = self.entry(object, b"Resources").or(inherited);
        match self.entry(object, b"Kids").and_then(Object::array) {
            Some(kids) => {
                for kid in kids {
                    if let Object::Reference(kid) = kid {
                        self.collect_pages((*kid, depth + 1), resources, seen, pages);
                    }
                }
            }
            None => pages.push(self.page(object, resources)),
        }
    }

    fn page(&self, object: &Object, inherited: Option<&Object>) -> Page {
        let entries: Option<&Dictionary> = object.dictionary();
        let contents = match entries.and_then(|entries| entries.get(&b"Contents"[..])) {
            Some(Object::Reference(number)) => match self.get(*number).and_then(Object::array) {
                Some(parts) => references(parts),
                None => vec![*number],
            },
            Some(Object::Array(parts)) => references(parts),
            _ => Vec::new(),
        };
        Page { contents, resources: self.entry(object, b"Resources").or(inherited).cloned() }
    }
}

fn references(parts: &[Object]) -> Vec<u32> {
    parts
        .iter()
        .filter_map(|part| if let Object::Reference(number) = part { Some(*number) } else { None })
        .collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is checked to be in range")]
fn to_index(number: f64) -> Option<usize> {
    (number >= 0.0 && number <= f64::from(u32::MAX)).then_some(number as usize)
}

/// The positions of a keyword.
fn positions(bytes: &[u8], word: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == word[0])) {
        at += next;
        if bytes[at..].starts_with(word) {
            found.push(at);
            at += word.len();
        } else {
            at += 1;
        }
    }
    found
}

/// The number of the object whose keyword `obj` is at `at`: `12 0 obj`.
fn object_number(bytes: &[u8], at: usize) -> Option<u32> {
    let mut words =
        bytes[at.saturating_sub(32)..at].rsplit(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let generation = words.next()?;
    let number = words.next()?;
    // What comes before the number may touch it.
    let digits = number.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&number[number.len() - digits..]).ok()?;
    generation.iter().all(u8::is_ascii_digit).then(|| number.parse().ok())?
}

fn inflate(data: &[u8], limit: usize) -> Vec<u8> {
    let mut decoded = Vec::new();
    // What was decoded before an error counts.
    let _ = ZlibDecoder::new(data).take(limit as u64).read_to_end(&mut decoded);
    decoded
}

fn decode_base85(data: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut group: Vec<u32> = Vec::with_capacity(5);
    let mut flush = |group: &mut Vec<u32>| {
        let count = group.len();
        if count > 1 {
            group.resize(5, 84);
            let value = group.iter().fold(0u32, |value, digit| value.wrapping_mul(85).wrapping_add(*digit));
            decoded.extend_from_slice(&value.to_be_bytes()[..count - 1]);
        }
        group.clear();
    };
    for byte in data {
        match byte {
            b'~' => break,
            b'z' if group.is_empty() => {
                group.extend([0; 5]);
                flush(&mut group);
            }
            b'!'..=b'u' => {
                group.push(u32::from(byte - b'!'));
                if group.len() == 5 {
                    flush(&mut group);
                }
            }
            _ => {}
        }
    }
    flush(&mut group);
    decoded
}
