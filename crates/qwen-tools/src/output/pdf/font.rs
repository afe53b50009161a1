//! The characters that the codes of a font represent, and their widths.

use std::collections::HashMap;

use super::document::Document;
use super::object::{Dictionary, Object, Reader};

/// Most characters that a font's own table may have.
const MAX_CODES: usize = 70_000;

/// The width of a character whose width is unknown, in thousandths of the font's size.
const USUAL_WIDTH: f64 = 500.0;

pub(super) struct Font {
    /// Bytes per code.
    code_length: usize,
    /// The texts of codes, from the font's own table.
    texts: HashMap<u32, String>,
    first_width: u32,
    widths: Vec<f64>,
    /// True if codes without an entry in the table have a known meaning.
    has_usual_codes: bool,
}

impl Default for Font {
    fn default() -> Self {
        Self {
            code_length: 1,
            texts: HashMap::new(),
            first_width: 0,
            widths: Vec::new(),
            has_usual_codes: true,
        }
    }
}

impl Font {
    pub fn read(font: &Object, document: &mut Document<'_>) -> Self {
        let is_composite = document.entry(font, b"Subtype").and_then(Object::name) == Some(b"Type0");
        let mut read = Self { has_usual_codes: !is_composite, ..Self::default() };
        if is_composite {
            read.code_length = 2;
        }
        if let Some(encoding) = document.entry(font, b"Encoding").and_then(Object::dictionary) {
            read.read_differences(encoding, document);
        }
        if let Some(widths) = document.entry(font, b"Widths").and_then(Object::array) {
            read.widths = widths.iter().map(|width| width.number().unwrap_or(USUAL_WIDTH)).collect();
            let first = document.entry(font, b"FirstChar").and_then(Object::number).unwrap_or(0.0);
            read.first_width = code_of(first);
        }
        let table = font.dictionary().and_then(|entries| entries.get(&b"ToUnicode"[..])).cloned();
        if let Some(Object::Reference(table)) = table
            && let Some(table) = document.stream(table)
        {
            read.read_table(&table);
        }
        read
    }

    /// Reads the names of the characters that differ from the usual ones.
    fn read_differences(&mut self, encoding: &Dictionary, document: &Document<'_>) {
        let differences = encoding.get(&b"Differences"[..]).and_then(|list| document.resolve(list)?.array());
        let mut code = 0;
        for item in differences.unwrap_or_default() {
            match item {
                Object::Number(number) => code = code_of(*number),
                Object::Name(name) => {
                    if let Some(text) = character_of(name) {
                        self.texts.insert(code, text);
                    }
                    code += 1;
                }
                _ => {}
            }
        }
    }

    /// Reads the table that gives codes their texts.
    fn read_table(&mut self, table: &[u8]) {
        let mut reader = Reader::new(table, 0);
        let mut operands: Vec<Object> = Vec::new();
        while reader.at < table.len() && self.texts.len() < MAX_CODES {
            match reader.next() {
                Some(Object::Operator(word)) => {
                    match &word[..] {
                        b"endcodespacerange" => {
                            if let Some(Object::Text(first)) = operands.first() {
                                self.code_length = first.len().clamp(1, 4);
                            }
                        }
                        b"endbfchar" => self.add_single(&operands),
                        b"endbfrange" => self.add_ranges(&operands),
                        _ => {}
                    }
                    operands.clear();
                }
                Some(operand) => operands.push(operand),
                None => {}
            }
        }
    }

    fn add_single(&mut self, operands: &[Object]) {
        for pair in operands.chunks_exact(2) {
            if let [Object::Text(code), Object::Text(text)] = pair {
                self.texts.insert(big_endian(code), utf16(text));
            }
        }
    }

    fn add_ranges(&mut self, operands: &[Object]) {
        for range in operands.chunks_exact(3) {
            let [Object::Text(first), Object::Text(last), target] = range else { continue };
            let (first, last) = (big_endian(first), big_endian(last));
            let count = last.saturating_sub(first).saturating_add(1).min(0x1_0000);
            match target {
                Object::Array(texts) => {
                    for (code, text) in (first..).zip(texts).take(count as usize) {
                        if let Object::Text(text) = text {
                            self.texts.insert(code, utf16(text));
                        }
                    }
                }
                Object::Text(text) => {
                    let text = utf16(text);
                    let Some(last_character) = text.chars().next_back() else { continue };
                    let prefix = &text[..text.len() - last_character.len_utf8()];
                    for at in 0..count {
                        let Some(character) = char::from_u32(u32::from(last_character) + at) else {
                            continue;
                        };
                        if self.texts.len() < MAX_CODES {
                            self.texts.insert(first.wrapping_add(at), format!("{prefix}{character}"));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Appends the text of a string, and returns its width in thousandths of the font's size.
    pub fn append(&self, string: &[u8], text: &mut String) -> f64 {
        let mut width = 0.0;
        for code in string.chunks(self.code_length) {
            let number = big_endian(code);
            width += number
                .checked_sub(self.first_width)
                .and_then(|at| self.widths.get(at as usize))
                .copied()
                .filter(|width| *width > 0.0)
                .unwrap_or(USUAL_WIDTH);
            match self.texts.get(&number) {
                Some(known) => text.push_str(known),
                None if self.has_usual_codes => {
                    let (usual, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(code);
                    text.extend(usual.chars().filter(|character| !character.is_control()));
                }
                None => {}
            }
        }
        width
    }
}

fn big_endian(code: &[u8]) -> u32 {
    code.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn utf16(bytes: &[u8]) -> String {
    let units =
        bytes.chunks(2).map(|pair| u16::from(pair[0]) << 8 | u16::from(pair.get(1).copied().unwrap_or(0)));
    char::decode_utf16(units).filter_map(Result::ok).filter(|character| *character != '\0').collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped to the range")]
fn code_of(number: f64) -> u32 {
    number.clamp(0.0, 65_535.0) as u32
}

/// The character with this name in PostScript.
fn character_of(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    if let Some(digits) = name.strip_prefix("uni") {
        return u32::from_str_radix(digits.get(..4)?, 16).ok().and_then(char::from_u32).map(String::from);
    }
    if name.len() == 1 {
        return Some(name.to_owned());
    }
    let known = [
        ("space", " "),
        ("period", "."),
        ("comma", ","),
        ("colon", ":"),
        ("semicolon", ";"),
        ("hyphen", "-"),
        ("endash", "–"),
        ("emdash", "—"),
        ("quoteright", "’"),
        ("quoteleft", "‘"),
        ("quotedblleft", "“"),
        ("quotedblright", "”"),
        ("quotesingle", "'"),
        ("quotedbl", "\""),
        ("parenleft", "("),
        ("parenright", ")"),
        ("bracketleft", "["),
        ("bracketright", "]"),
        ("braceleft", "{"),
        ("braceright", "}"),
        ("slash", "/"),
        ("backslash", "\\"),
        ("bar", "|"),
        ("exclam", "!"),
        ("question", "?"),
        ("at", "@"),
        ("numbersign", "#"),
        ("dollar", "$"),
        ("percent", "%"),
        ("ampersand", "&"),
        ("asterisk", "*"),
        ("plus", "+"),
        ("equal", "="),
        ("less", "<"),
        ("greater", ">"),
        ("underscore", "_"),
        ("grave", "`"),
        ("bullet", "•"),
        ("ellipsis", "…"),
        ("zero", "0"),
        ("one", "1"),
        ("two", "2"),
        ("three", "3"),
        ("four", "4"),
        ("five", "5"),
        ("six", "6"),
        ("seven", "7"),
        ("eight", "8"),
        ("nine", "9"),
        ("ff", "ff"),
        ("fi", "fi"),
        ("fl", "fl"),
        ("ffi", "ffi"),
        ("ffl", "ffl"),
    ];
    known.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
}
