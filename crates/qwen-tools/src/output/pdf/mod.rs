//! The text of PDF documents.
//!
//! A small reader: it finds objects by their keywords, decodes the usual text encodings of streams, and follows the
//! text operators of each page. It does not draw: images of text (scans) have none. Everything is bounded, and what is
//! malformed is skipped.

mod document;
mod font;
mod object;

use std::collections::HashMap;

use self::document::{Document, Page};
use self::font::Font;
use self::object::{Object, Reader};

/// Most bytes of text that are collected.
const MAX_TEXT: usize = 8 * 1024 * 1024;

/// A space is missing where the gap between two strings is larger than this share of the font's size.
const WORD_GAP: f64 = 0.2;

/// What a document contains.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PdfText {
    /// The texts of its pages.
    Pages(Vec<String>),
    Encrypted,
}

/// Reads the text of a document.
pub(crate) fn read_text(bytes: &[u8]) -> PdfText {
    let mut document = Document::read(bytes);
    if document.is_encrypted {
        return PdfText::Encrypted;
    }
    let mut fonts = HashMap::new();
    let mut room = MAX_TEXT;
    let mut pages = Vec::new();
    for page in document.pages() {
        let text = read_page(&page, &mut document, &mut fonts, room);
        room -= text.len().min(room);
        pages.push(text);
    }
    PdfText::Pages(pages)
}

fn read_page(
    page: &Page,
    document: &mut Document<'_>,
    fonts: &mut HashMap<u32, Font>,
    room: usize,
) -> String {
    let mut content = Vec::new();
    for part in &page.contents {
        content.extend(document.stream(*part).unwrap_or_default());
        content.push(b'\n');
    }
    let names = page_fonts(page, document);
    for font in names.values() {
        if !fonts.contains_key(font)
            && let Some(object) = document.get(*font).cloned()
        {
            let read = Font::read(&object, document);
            fonts.insert(*font, read);
        }
    }
    let usual = Font::default();
    let font_of = |name: &[u8]| names.get(name).and_then(|number| fonts.get(number)).unwrap_or(&usual);
    let mut writer = TextWriter {
        text: String::new(),
        font: &usual,
        size: 1.0,
        line: (0.0, 0.0),
        x: 0.0,
        leading: 0.0,
        scale: 1.0,
        last: None,
    };
    let mut reader = Reader::new(&content, 0);
    let mut operands: Vec<Object> = Vec::new();
    while reader.at < content.len() && writer.text.len() < room {
        match reader.next() {
            Some(Object::Operator(word)) => {
                if &word[..] == b"Tf" {
                    if let [Object::Name(name), Object::Number(size)] = &operands[..] {
                        (writer.font, writer.size) = (font_of(name), *size);
                    }
                } else if &word[..] == b"BI" {
                    skip_image(&content, &mut reader);
                } else {
                    writer.apply(&word, &operands);
                }
                operands.clear();
            }
            Some(operand) => operands.push(operand),
            None => {}
        }
    }
    writer.text.trim().to_owned()
}

/// The numbers of the page's fonts by their names.
fn page_fonts(page: &Page, document: &Document<'_>) -> HashMap<Vec<u8>, u32> {
    let fonts =
        page.resources.as_ref().and_then(|resources| document.entry(resources, b"Font")?.dictionary());
    let numbered = |(name, font): (&Vec<u8>, &Object)| match font {
        Object::Reference(number) => Some((name.clone(), *number)),
        _ => None,
    };
    fonts.into_iter().flatten().filter_map(numbered).collect()
}

/// Skips the data of an image between operators.
fn skip_image(content: &[u8], reader: &mut Reader<'_>) {
    let rest = &content[reader.at..];
    let end = rest.windows(4).position(|four| {
        four[0].is_ascii_whitespace() && &four[1..3] == b"EI" && four[3].is_ascii_whitespace()
    });
    reader.at += end.map_or(rest.len(), |end| end + 3);
}

/// Writes the strings of a page, with spaces and line ends where their positions have gaps.
struct TextWriter<'a> {
    text: String,
    font: &'a Font,
    size: f64,
    /// Where the current line starts.
    line: (f64, f64),
    /// Where the next string starts on it.
    x: f64,
    leading: f64,
    /// How much the text matrix enlarges.
    scale: f64,
    /// Where the last string ended.
    last: Option<(f64, f64)>,
}

impl TextWriter<'_> {
    fn apply(&mut self, operator: &[u8], operands: &[Object]) {
        let number = |at: usize| operands.get(at).and_then(Object::number).unwrap_or(0.0);
        match operator {
            b"BT" => (self.line, self.x, self.scale) = ((0.0, 0.0), 0.0, 1.0),
            b"TL" => self.leading = number(0),
            b"Td" => self.move_line(number(0), number(1)),
            b"TD" => {
                self.leading = -number(1);
                self.move_line(number(0), number(1));
            }
            b"T*" => self.move_line(0.0, -self.leading),
            b"Tm" => {
                self.scale = number(0).abs().max(number(1).abs());
                self.line = (number(4), number(5));
                self.x = self.line.0;
            }
            b"Tj" => self.show(operands.last()),
            b"'" | b"\"" => {
                self.move_line(0.0, -self.leading);
                self.show(operands.last());
            }
            b"TJ" => {
                for item in operands.last().and_then(Object::array).unwrap_or_default() {
                    match item {
                        Object::Number(back) => self.x -= back / 1000.0 * self.height(),
                        string => self.show(Some(string)),
                    }
                }
            }
            _ => {}
        }
    }

    /// The size of the font on the page.
    fn height(&self) -> f64 {
        self.size.abs() * self.scale
    }

    fn move_line(&mut self, right: f64, up: f64) {
        self.line = (self.line.0 + right * self.scale, self.line.1 + up * self.scale);
        self.x = self.line.0;
    }

    fn show(&mut self, string: Option<&Object>) {
        let Some(Object::Text(string)) = string else { return };
        let height = self.height();
        if let Some((x, y)) = self.last {
            if (self.line.1 - y).abs() > height * 0.5 {
                // A larger step than that between lines separates paragraphs.
                let is_paragraph = (self.line.1 - y).abs() > height * 1.9;
                self.text.push_str(if is_paragraph { "\n\n" } else { "\n" });
            } else if (self.x - x > height * WORD_GAP || self.x < x - height)
                && !self.text.ends_with([' ', '\n'])
            {
                self.text.push(' ');
            }
        }
        self.x += self.font.append(string, &mut self.text) / 1000.0 * height;
        self.last = Some((self.x, self.line.1));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    fn stream(number: u32, entries: &str, data: &[u8]) -> Vec<u8> {
        let mut object =
            format!("{number} 0 obj\n<< /Length {} {entries} >>\nstream\n", data.len()).into_bytes();
        object.extend_from_slice(data);
        object.extend_from_slice(b"\nendstream\nendobj\n");
        object
    }

    fn deflated(data: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn document(content: &str, more: &[u8]) -> Vec<u8> {
        let mut bytes = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n\
            2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 /Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> >>\nendobj\n\
            3 0 obj\n<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>\nendobj\n\
            5 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\n\
            6 0 obj\n<< /Type /Font /Subtype /Type0 /ToUnicode 7 0 R >>\nendobj\n"
            .to_vec();
        bytes.extend(stream(4, "/Filter /FlateDecode", &deflated(content.as_bytes())));
        bytes.extend_from_slice(more);
        bytes.extend_from_slice(b"trailer\n<< /Root 1 0 R >>\n%%EOF\n");
        bytes
    }

    fn text(bytes: &[u8]) -> String {
        match read_text(bytes) {
            PdfText::Pages(pages) => pages.join("\u{c}"),
            PdfText::Encrypted => "encrypted".to_owned(),
        }
    }

    #[test]
    fn lines_words_and_paragraphs_are_told_apart_by_their_positions() {
        let content = "BT /F1 12 Tf 72 700 Td (Hello, ) Tj [(W) 20 (orld) -400 (again)] TJ 0 -14 Td (Second \\(line\\)) Tj \
                       0 -40 Td (New paragraph) Tj ET";
        assert_eq!(text(&document(content, b"")), "Hello, World again\nSecond (line)\n\nNew paragraph");
    }

    #[test]
    fn codes_of_a_font_are_read_with_its_table() {
        let table =
            b"1 begincodespacerange <0000> <FFFF> endcodespacerange 1 beginbfchar <0001> <00E4> endbfchar \
                      1 beginbfrange <0002> <0004> <0041> endbfrange";
        let content = "BT /F2 10 Tf 1 0 0 1 50 50 Tm <00010002> Tj <0004> Tj ET";
        assert_eq!(text(&document(content, &stream(7, "", table))), "äAC");
    }

    #[test]
    fn a_file_that_is_damaged_encrypted_or_has_no_text_is_no_reason_to_fail() {
        let whole = document("BT /F1 12 Tf (x) Tj ET", b"");
        for end in 0..whole.len() {
            let _ = read_text(&whole[..end]);
        }
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] = broken[at].wrapping_add(13);
            let _ = read_text(&broken);
        }
        let locked = String::from_utf8_lossy(b"%PDF-1.4\ntrailer << /Encrypt 9 0 R >>").into_owned();
        assert_eq!(read_text(locked.as_bytes()), PdfText::Encrypted);
        assert_eq!(text(&document("q 1 0 0 1 0 0 cm /Im0 Do Q", b"")), "");
        let nested = format!("%PDF-1.4\n1 0 obj {} endobj", "[".repeat(100_000));
        assert_eq!(text(nested.as_bytes()), "");
    }
}
