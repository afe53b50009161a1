//! However a stream of server-sent events is cut, the same events come out of it, and no event is over the
//! limit.

#![no_main]

use libfuzzer_sys::fuzz_target;
use qwen_http::sse::SseReader;

const LIMIT: usize = 4096;

/// The events of a stream that comes in pieces, and whether it was read to its end.
fn events<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<(String, String)>, bool) {
    let mut reader = SseReader::with_limit(LIMIT);
    let mut events = Vec::new();
    let mut take = |reader: &mut SseReader| loop {
        match reader.next_event() {
            Ok(Some(event)) => {
                assert!(event.data.len() <= LIMIT);
                events.push((event.name.to_owned(), event.data.to_owned()));
            }
            Ok(None) => return true,
            Err(_) => return false,
        }
    };
    for piece in pieces {
        reader.push(piece);
        if !take(&mut reader) {
            return (events, false);
        }
    }
    reader.end();
    let whole = take(&mut reader);
    (events, whole)
}

fuzz_target!(|data: &[u8]| {
    let Some((size, stream)) = data.split_first() else { return };
    let whole = events(std::iter::once(stream));
    let cut = events(stream.chunks(usize::from(*size).max(1)));
    assert_eq!(whole, cut);
});
