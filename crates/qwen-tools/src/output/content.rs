//! File content: text with its line endings, an image, or binary data that no model can read.

use std::io::{self, Read};
use std::path::Path;

use qwen_events::image_type;

use crate::refusal::Refusal;
use crate::workspace::Opened;

/// Largest file that is read, in bytes.
pub(crate) const MAX_BYTES: u64 = 20 << 20;
/// How many bytes are searched for a NUL, which marks a file as binary.
const SNIFFED: usize = 8 * 1024;
const BOM: &str = "\u{feff}";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    /// Line endings unchanged, byte order mark removed.
    pub body: String,
    /// True if the file starts with a byte order mark.
    pub bom: bool,
    /// True if invalid UTF-8 was replaced. Such a text must not be written back.
    pub lossy: bool,
}

/// File type, detected from the first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// An image, with its MIME type.
    Image(&'static str),
    Pdf,
    Binary,
}

/// Reads a whole file. Refuses one over [`MAX_BYTES`].
pub(crate) fn read(opened: &mut Opened, shown: &Path) -> Result<Vec<u8>, Refusal> {
    let failed =
        |error: io::Error| Refusal::new("io_error", format!("{} cannot be read: {error}.", shown.display()));
    let too_large = |bytes: u64| {
        Refusal::new(
            "file_too_large",
            format!(
                "{} has {bytes} bytes; files of more than {MAX_BYTES} are not read. Use grep_search, or a shell command \
                 that takes out the part you need.",
                shown.display()
            ),
        )
    };
    let size = opened.metadata.len();
    if size > MAX_BYTES {
        return Err(too_large(size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    // It may grow while it is read.
    Read::by_ref(&mut opened.file).take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
}

pub(crate) fn kind(bytes: &[u8]) -> Kind {
    if let Some(mime_type) = image_type(bytes) {
        return Kind::Image(mime_type);
    }
    match bytes {
        [b'%', b'P', b'D', b'F', b'-', ..] => Kind::Pdf,
        _ if bytes.iter().take(SNIFFED).any(|&byte| byte == 0) => Kind::Binary,
        _ => Kind::Text,
    }
}

impl Text {
    pub(crate) fn decode(bytes: Vec<u8>) -> Self {
        let (mut text, lossy) = match String::from_utf8(bytes) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        let bom = text.starts_with(BOM);
        if bom {
            text.drain(..BOM.len());
        }
        Self { body: text, bom, lossy }
    }

    /// True if there is at least one line and every line ends with CRLF.
    pub(crate) fn is_crlf(&self) -> bool {
        let mut ends = self.body.match_indices('\n').peekable();
        ends.peek().is_some()
            && ends.all(|(at, _)| self.body.as_bytes().get(at.wrapping_sub(1)) == Some(&b'\r'))
    }

    /// Encodes `text` as replacement for this content, with the same byte order mark.
    pub(crate) fn encode(&self, text: &str) -> Vec<u8> {
        if self.bom { [BOM.as_bytes(), text.as_bytes()].concat() } else { text.as_bytes().to_vec() }
    }
}

/// Converts all line endings to CRLF.
pub(crate) fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_first_bytes() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], Kind::Image("image/png")),
            (b"\xff\xd8\xff\xe0", Kind::Image("image/jpeg")),
            (b"GIF89a", Kind::Image("image/gif")),
            (b"RIFF\x01\x02\x03\x04WEBPVP8", Kind::Image("image/webp")),
            (b"BM\x01\x02\x03\x04\0\0\0\0", Kind::Image("image/bmp")),
            (b"BMW is a car", Kind::Text),
            (b"%PDF-1.7", Kind::Pdf),
            (b"\x7fELF\0\0", Kind::Binary),
            (b"", Kind::Text),
            ("gr\u{fc}\u{df}e".as_bytes(), Kind::Text),
        ] {
            assert_eq!(kind(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn line_ends_and_byte_order_marks_are_seen_and_kept() {
        let crlf = Text::decode(b"\xef\xbb\xbfa\r\nb\r\n".to_vec());
        assert_eq!((crlf.body.as_str(), crlf.bom, crlf.is_crlf()), ("a\r\nb\r\n", true, true));
        assert_eq!(crlf.encode("x"), b"\xef\xbb\xbfx");
        assert!(!Text::decode(b"a\r\nb\n".to_vec()).is_crlf());
        assert!(!Text::decode(b"a".to_vec()).is_crlf());
        assert!(!Text::decode(b"\n".to_vec()).is_crlf());
        assert!(Text::decode(b"a\xff".to_vec()).lossy);
        assert_eq!(with_crlf("a\nb\r\nc"), "a\r\nb\r\nc");
    }
}
