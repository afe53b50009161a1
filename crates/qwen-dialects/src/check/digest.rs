//! A text that is only compared, stored as its length and a hash, so that long streams cost no memory.

/// FNV-1a over the bytes, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest {
    length: u64,
    hash: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Self { length: 0, hash: 0xcbf2_9ce4_8422_2325 }
    }
}

impl Digest {
    pub(super) fn compute(text: &str) -> Self {
        let mut digest = Self::default();
        digest.add(text);
        digest
    }

    /// Adds a piece of text.
    pub(super) fn add(&mut self, piece: &str) {
        self.length += piece.len() as u64;
        for byte in piece.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self.length == 0
    }

    /// The length of the text in bytes.
    pub(super) fn length(self) -> u64 {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_joined_are_the_whole() {
        let mut joined = Digest::default();
        assert!(joined.is_empty());
        for piece in ["Hel", "", "lo ", "wörld"] {
            joined.add(piece);
        }
        assert_eq!(joined, Digest::compute("Hello wörld"));
        assert_ne!(joined, Digest::compute("Hello world!"));
    }
}
