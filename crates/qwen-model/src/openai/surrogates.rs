//! Repairs characters that a server split. A server that counts UTF-16 units may end a chunk in the middle
//! of a surrogate pair and write each half as a separate escape, which no JSON parser accepts.

/// Replaces a half whose other half never arrived.
const REPLACEMENT: &str = "\\ufffd";

/// The halves of one stream.
#[derive(Debug, Default)]
pub(super) struct SurrogateJoiner {
    /// The escaped first half at the end of the last chunk.
    first: Option<String>,
}

impl SurrogateJoiner {
    /// The chunk with its lone halves joined to those of its neighbours, or replaced if there is nothing to
    /// join; none if it has no lone half, so that the error has another cause.
    pub fn repair(&mut self, json: &str) -> Option<String> {
        let mut mended = String::with_capacity(json.len() + REPLACEMENT.len());
        let mut held = self.first.take();
        let mut lone = false;
        let mut rest = json;
        while let Some(at) = rest.find('\\') {
            let (before, escape) = rest.split_at(at);
            mended.push_str(before);
            let length = if escape.as_bytes().get(1) == Some(&b'u') { 6 } else { 2 };
            let (escape, after) = escape.split_at_checked(length)?;
            rest = after;
            match surrogate_half(escape) {
                None => mended.push_str(escape),
                Some(SurrogateHalf::First)
                    if rest.get(..6).and_then(surrogate_half) == Some(SurrogateHalf::Second) =>
                {
                    let (second, after) = rest.split_at(6);
                    mended.push_str(escape);
                    mended.push_str(second);
                    rest = after;
                }
                // The string ends with it: the other half starts the next one.
                Some(SurrogateHalf::First) if rest.starts_with('"') => {
                    lone = true;
                    self.first = Some(escape.to_owned());
                }
                Some(SurrogateHalf::First) => {
                    lone = true;
                    mended.push_str(REPLACEMENT);
                }
                Some(SurrogateHalf::Second) => {
                    lone = true;
                    match held.take().filter(|_| mended.ends_with('"')) {
                        Some(first) => {
                            mended.push_str(&first);
                            mended.push_str(escape);
                        }
                        None => mended.push_str(REPLACEMENT),
                    }
                }
            }
        }
        mended.push_str(rest);
        lone.then_some(mended)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum SurrogateHalf {
    First,
    Second,
}

/// Which half of a pair an escape is; none if it is neither.
fn surrogate_half(escape: &str) -> Option<SurrogateHalf> {
    let unit = u16::from_str_radix(escape.strip_prefix("\\u")?, 16).ok()?;
    match unit {
        0xD800..=0xDBFF => Some(SurrogateHalf::First),
        0xDC00..=0xDFFF => Some(SurrogateHalf::Second),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A chunk whose text is these UTF-16 units, every one escaped.
    fn chunk(units: &[u16]) -> String {
        let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        format!(r#"{{"text":"{escaped}"}}"#)
    }

    fn text(json: &str) -> String {
        let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
        value["text"].as_str().expect("a text").to_owned()
    }

    proptest! {
        #[test]
        fn a_text_that_is_cut_anywhere_comes_out_whole(said in ".{0,12}", cut in 0..24_usize) {
            let units: Vec<u16> = said.encode_utf16().collect();
            let (left, right) = units.split_at(cut.min(units.len()));
            let mut halves = SurrogateJoiner::default();
            let mut read = |units: &[u16]| {
                let json = chunk(units);
                match serde_json::from_str::<serde_json::Value>(&json) {
                    Ok(_) => text(&json),
                    Err(_) => text(&halves.repair(&json).expect("half of a surrogate pair")),
                }
            };
            let together = read(left) + &read(right);
            prop_assert_eq!(together, said);
        }

        #[test]
        fn whatever_halves_there_are_the_chunk_can_be_read(units in proptest::collection::vec(0xD7F0..0xE010_u16, 0..8)) {
            let json = chunk(&units);
            if serde_json::from_str::<serde_json::Value>(&json).is_err() {
                let mended = SurrogateJoiner::default().repair(&json).expect("half of a surrogate pair");
                prop_assert!(serde_json::from_str::<serde_json::Value>(&mended).is_ok(), "{}", mended);
            }
        }

        #[test]
        fn no_bytes_make_it_fall_over(json in ".*") {
            let _ = SurrogateJoiner::default().repair(&json);
        }
    }
}
