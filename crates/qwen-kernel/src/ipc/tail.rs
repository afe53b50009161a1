//! The tail of a worker's standard error.

use std::collections::VecDeque;

/// The size of the tail in bytes.
const TAIL_BYTES: usize = 4096;

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    /// Adds bytes and drops the oldest beyond the limit.
    pub fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let over = (self.bytes.len() + bytes.len()).saturating_sub(TAIL_BYTES);
        self.bytes.drain(..over);
        self.bytes.extend(bytes);
    }

    /// The last whole lines, for error messages.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let mut tail = Tail::default();
        for n in 0..10_000 {
            tail.push(format!("line {n}\n").as_bytes());
        }
        assert!(tail.text().ends_with("line 9999") && tail.text().len() <= TAIL_BYTES);
    }
}
