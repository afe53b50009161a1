//! Whatever the bytes are, nothing panics, and every finding names a line that was there.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use qwen_dialects::Dialect;
use qwen_dialects::check::Mode;
use qwen_dialects::view::ViewOptions;

use crate::checked::check;
use crate::files::streams;
use crate::viewed::view;

/// Something done to a stream that never should be.
#[derive(Debug, Clone)]
enum Garble {
    Flip(Index, u8),
    Remove(Index, Index),
    Repeat(Index, Index),
    Splice(Index, Vec<u8>),
}

impl Garble {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let span = |a: &Index, b: &Index, bytes: &[u8]| {
            let (a, b) = (a.index(bytes.len()), b.index(bytes.len()));
            a.min(b)..a.max(b).min(a.min(b) + 4096)
        };
        match self {
            _ if bytes.is_empty() => {}
            Self::Flip(at, with) => {
                let at = at.index(bytes.len());
                bytes[at] ^= with;
            }
            Self::Remove(a, b) => drop(bytes.drain(span(a, b, bytes))),
            Self::Repeat(a, b) => {
                let piece = bytes[span(a, b, bytes)].to_vec();
                let at = b.index(bytes.len());
                bytes.splice(at..at, piece);
            }
            Self::Splice(at, other) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, other.iter().copied());
            }
        }
    }
}

fn garble() -> impl Strategy<Value = Garble> {
    let at = any::<Index>;
    prop_oneof![
        (at(), 1_u8..).prop_map(|(at, with)| Garble::Flip(at, with)),
        (at(), at()).prop_map(|(a, b)| Garble::Remove(a, b)),
        (at(), at()).prop_map(|(a, b)| Garble::Repeat(a, b)),
        (at(), vec(any::<u8>(), 0..40)).prop_map(|(at, bytes)| Garble::Splice(at, bytes)),
    ]
}

/// A stream of the corpus, garbled.
fn garbled() -> impl Strategy<Value = Vec<u8>> {
    let small = streams().iter().filter(|stream| stream.bytes.len() < 20_000).map(|stream| &stream.bytes[..]);
    (select(small.collect::<Vec<_>>()), vec(garble(), 1..6)).prop_map(|(bytes, garbles)| {
        let mut bytes = bytes.to_vec();
        for garble in &garbles {
            garble.apply(&mut bytes);
        }
        bytes
    })
}

fn dialect() -> impl Strategy<Value = Option<Dialect>> {
    prop_oneof![Just(None), select(Dialect::ALL.to_vec()).prop_map(Some)]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Stream), Just(Mode::Fragment)]
}

fn judge(dialect: Option<Dialect>, mode: Mode, bytes: &[u8]) {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').count() as u64;
    for finding in check(dialect, mode, bytes) {
        assert!((1..=lines.max(1)).contains(&finding.line), "{finding:?} of {lines} lines");
        assert!(!finding.message.is_empty());
    }
}

proptest! {
    #[test]
    fn any_bytes_can_be_checked(
        dialect in dialect(), mode in mode(), bytes in vec(prop_oneof![any::<u8>(), select(b"{}[]\",:\n\\".to_vec())], 0..400),
    ) {
        judge(dialect, mode, &bytes);
    }

    #[test]
    fn any_bytes_can_be_viewed_and_harm_no_terminal(
        dialect in dialect(), bytes in prop_oneof![vec(any::<u8>(), 0..400), garbled()], width in 0_usize..200,
    ) {
        let shown = view(dialect, ViewOptions { color: false, width, height: None }, &bytes);
        let harm = shown.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        prop_assert_eq!(harm, None, "{}", shown);
    }

    #[test]
    fn garbled_streams_can_be_checked(dialect in dialect(), mode in mode(), bytes in garbled()) {
        judge(dialect, mode, &bytes);
    }
}
