//! Names for lines.

/// Mints random (version 4) UUIDs. Seeded, so that the same events give the same lines.
#[derive(Debug)]
pub(in crate::claude) struct UuidGenerator(fastrand::Rng);

/// A UUID as text.
#[derive(Debug, Clone, Copy)]
pub(in crate::claude) struct Uuid([u8; 36]);

impl UuidGenerator {
    pub(in crate::claude) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(in crate::claude) fn next(&mut self) -> Uuid {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.0.u64(..).to_le_bytes());
        bytes[8..].copy_from_slice(&self.0.u64(..).to_le_bytes());
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let mut text = [b'-'; 36];
        let mut at = 0;
        for (i, byte) in bytes.into_iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                at += 1;
            }
            text[at] = HEX[usize::from(byte >> 4)];
            text[at + 1] = HEX[usize::from(byte & 0x0f)];
            at += 2;
        }
        Uuid(text)
    }
}

impl Uuid {
    pub(in crate::claude) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(in crate::claude) fn as_str(&self) -> &str {
        // Hexadecimal digits and hyphens are always text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_version_4_and_repeat_with_their_seed() {
        let (mut a, mut b) = (UuidGenerator::new(7), UuidGenerator::new(7));
        for _ in 0..1000 {
            let uuid = a.next();
            let text = uuid.as_str();
            assert_eq!(text, b.next().as_str());
            assert_eq!(text.len(), 36);
            assert_eq!(&text[14..15], "4", "{text}");
            assert!(matches!(&text[19..20], "8" | "9" | "a" | "b"), "{text}");
            for (i, c) in text.chars().enumerate() {
                assert_eq!(c == '-', matches!(i, 8 | 13 | 18 | 23), "{text}");
                assert!(c == '-' || c.is_ascii_hexdigit() && !c.is_ascii_uppercase(), "{text}");
            }
        }
        assert_ne!(a.next().as_str(), a.next().as_str());
    }
}
