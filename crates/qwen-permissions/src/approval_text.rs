//! Makes text safe to display in permission requests.

use std::fmt::Write;

use qwen_events::is_hidden;

/// Escapes characters that are invisible to users: terminal commands, changes of writing direction,
/// zero-width and tag characters. Line breaks and tabs stay; the others become `\u{…}`.
pub fn escape_for_approval(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) || character == '\u{FE0F}' {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{{{:x}}}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape_for_approval;

    #[test]
    fn nothing_hidden_is_left_in_what_is_shown() {
        let cases = [
            ("ls -la\n\tnext", "ls -la\n\tnext"),
            ("\u{1b}[31mred\u{1b}[0m", "\\u{1b}[31mred\\u{1b}[0m"),
            ("\u{1b}]52;c;aGk=\u{7}", "\\u{1b}]52;c;aGk=\\u{7}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\rb\u{8}", "a\\u{d}b\\u{8}"),
            ("\u{202e}gpj.exe\u{2066}", "\\u{202e}gpj.exe\\u{2066}"),
            ("ze\u{200b}ro\u{feff}", "ze\\u{200b}ro\\u{feff}"),
            ("tag\u{e0041}\u{e007f}", "tag\\u{e0041}\\u{e007f}"),
            ("no\u{a0}break\u{3000}", "no\\u{a0}break\\u{3000}"),
            ("grüße 世界 🎉", "grüße 世界 🎉"),
        ];
        for (text, expected) in cases {
            assert_eq!(escape_for_approval(text), expected);
        }
    }
}
