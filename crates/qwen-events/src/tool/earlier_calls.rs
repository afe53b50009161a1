//! The line about earlier calls of a message that did not take effect. It precedes a result for the model.

/// The beginning of the line.
pub const EARLIER_CALLS: &str = "Note: earlier in this message, ";

/// Returns a result without the line, for readers who see every call.
pub fn without_earlier_calls(text: &str) -> &str {
    match text.split_once('\n') {
        Some((note, rest)) if note.starts_with(EARLIER_CALLS) => rest,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_about_earlier_calls_is_removed() {
        let note = format!("{EARLIER_CALLS}edit `a` did not happen (it failed).");
        assert_eq!(without_earlier_calls(&format!("{note}\nread\nmore")), "read\nmore");
        assert_eq!(without_earlier_calls("read\nmore"), "read\nmore");
        assert_eq!(without_earlier_calls(&note), note);
    }
}
