//! Bytes as they come, made into text that never splits a character.

/// Turns pieces of bytes into pieces of text. A character that is split between two pieces is held back until the rest
/// of it comes; bytes that are no UTF-8 become U+FFFD.
#[derive(Debug, Default)]
pub struct Utf8Pieces {
    held: Vec<u8>,
}

impl Utf8Pieces {
    /// Takes the next bytes and appends the text that is whole now.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        if self.held.is_empty() {
            self.held = decode(bytes, text).to_vec();
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.extend_from_slice(bytes);
            self.held = decode(&joined, text).to_vec();
        }
    }

    /// Says that no more bytes come: what is still held back is no character.
    pub fn finish(&mut self, text: &mut String) {
        if !std::mem::take(&mut self.held).is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Appends what is whole and gives back the start of a character that is not.
fn decode<'a>(mut bytes: &'a [u8], text: &mut String) -> &'a [u8] {
    loop {
        match std::str::from_utf8(bytes) {
            Ok(valid) => {
                text.push_str(valid);
                return &[];
            }
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                let Some(wrong) = error.error_len() else {
                    return rest;
                };
                text.push(char::REPLACEMENT_CHARACTER);
                bytes = &rest[wrong..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_pieces(bytes: &[u8], cuts: &[usize]) -> String {
        let mut pieces = Utf8Pieces::default();
        let mut text = String::new();
        let mut start = 0;
        for &cut in cuts {
            let end = (start + cut).min(bytes.len());
            pieces.push(&bytes[start..end], &mut text);
            start = end;
        }
        pieces.push(&bytes[start..], &mut text);
        pieces.finish(&mut text);
        text
    }

    proptest! {
        #[test]
        fn wherever_it_is_cut_the_text_is_the_same(
            bytes in prop_oneof![any::<Vec<u8>>(), ".*".prop_map(String::into_bytes)],
            cuts in prop::collection::vec(0usize..5, 0..40),
        ) {
            prop_assert_eq!(in_pieces(&bytes, &cuts), String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn half_a_character_is_held_back() {
        let mut pieces = Utf8Pieces::default();
        let mut text = String::new();
        pieces.push(&"a€".as_bytes()[..2], &mut text);
        assert_eq!(text, "a");
        pieces.push(&"a€".as_bytes()[2..], &mut text);
        assert_eq!(text, "a€");
    }
}
