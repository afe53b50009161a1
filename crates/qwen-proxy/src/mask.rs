//! Replaces secrets in what servers send back by as many asterisks, so that lengths stay as they are.

use memchr::memmem;

/// Masks the same texts in one stream after the other.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    /// The longest first, because one may contain another.
    secrets: Vec<Vec<u8>>,
}

impl Mask {
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<Vec<u8>> =
            secrets.into_iter().filter(|secret| !secret.is_empty()).map(String::into_bytes).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Masks a complete text.
    pub fn apply(&self, bytes: &mut [u8]) {
        for secret in &self.secrets {
            let found: Vec<usize> = memmem::find_iter(bytes, secret).collect();
            for at in found {
                if let Some(place) = bytes.get_mut(at..at + secret.len()) {
                    place.fill(b'*');
                }
            }
        }
    }

    /// How many bytes at the end of a text may be the beginning of a secret.
    pub fn count_undecided(&self, bytes: &[u8]) -> usize {
        let longest = |secret: &Vec<u8>| {
            let most = secret.len().saturating_sub(1).min(bytes.len());
            (1..=most)
                .rev()
                .find(|length| bytes.get(bytes.len() - length..) == secret.get(..*length))
                .unwrap_or(0)
        };
        self.secrets.iter().map(longest).max().unwrap_or(0)
    }
}

/// A stream that is masked piece by piece.
#[derive(Debug)]
pub struct MaskedStream<'a> {
    mask: &'a Mask,
    held: Vec<u8>,
}

impl<'a> MaskedStream<'a> {
    pub fn new(mask: &'a Mask) -> Self {
        Self { mask, held: Vec::new() }
    }

    /// Returns what can be passed on after `piece`.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        self.mask.apply(&mut self.held);
        let undecided = self.mask.count_undecided(&self.held);
        let rest = self.held.split_off(self.held.len() - undecided);
        std::mem::replace(&mut self.held, rest)
    }

    /// Returns what was held back, at the end of the stream.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_however_the_stream_is_cut() {
        let mask = Mask::new(["Bearer sesame".into(), "sesame".into(), String::new()]);
        let text = b"a Bearer sesame, sesamesesame, sesam";
        let expected = b"a *************, ************, sesam";
        for size in 1..=text.len() {
            let mut stream = MaskedStream::new(&mask);
            let mut out: Vec<u8> = text.chunks(size).flat_map(|piece| stream.push(piece)).collect();
            out.extend(stream.finish());
            assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(expected), "pieces of {size}");
        }
    }

    #[test]
    fn a_stream_without_secrets_is_not_held_back() {
        let mask = Mask::default();
        assert_eq!(MaskedStream::new(&mask).push(b"anything"), b"anything");
    }
}
