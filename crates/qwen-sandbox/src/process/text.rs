//! Decodes a byte stream to text without splitting characters.

/// Converts byte chunks to text. A character that is split between two chunks is held back until the rest
/// arrives; invalid UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
pub struct Utf8Pieces {
    held: Vec<u8>,
}

impl Utf8Pieces {
    /// Adds bytes and appends the complete characters to `text`.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        if self.held.is_empty() {
            self.held = decode(bytes, text).to_vec();
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.extend_from_slice(bytes);
            self.held = decode(&joined, text).to_vec();
        }
    }

    /// Ends the stream. An incomplete character becomes U+FFFD.
    pub fn finish(&mut self, text: &mut String) {
        if !std::mem::take(&mut self.held).is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Appends complete characters and returns the start of an incomplete one.
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
