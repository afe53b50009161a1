//! Text that a user judges: commands, file names, changes, arguments.

use super::{is_misleading, push_code_point};

/// A longer run of blanks or line breaks is replaced by its length.
const LONGEST_RUN: usize = 60;

/// Writes out everything that would be invisible or that a terminal would act on: `^[` for controls,
/// `⟨U+202E⟩` for other characters, `⟨6000 spaces⟩` for runs that would push text out of view. Line breaks and
/// tabs remain.
pub fn visible_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut previous = '\n';
    while let Some(c) = chars.next() {
        if matches!(c, ' ' | '\t' | '\n') {
            let mut count = 1;
            while chars.next_if_eq(&c).is_some() {
                count += 1;
            }
            push_run(c, count, &mut out);
        } else {
            push_visible(c, previous, &mut out);
        }
        previous = c;
    }
    out
}

fn push_run(c: char, count: usize, out: &mut String) {
    let (longest, name) = match c {
        '\n' => (LONGEST_RUN / 10, "line breaks"),
        '\t' => (LONGEST_RUN / 4, "tabs"),
        _ => (LONGEST_RUN, "spaces"),
    };
    if count > longest {
        out.push_str(&format!("⟨{count} {name}⟩"));
        if c == '\n' {
            out.push('\n');
        }
    } else {
        out.extend(std::iter::repeat_n(c, count));
    }
}

fn push_visible(c: char, previous: char, out: &mut String) {
    match c {
        '\0'..='\u{1f}' => {
            out.push('^');
            out.push(char::from(c as u8 + 0x40));
        }
        '\u{7f}' => out.push_str("^?"),
        // A joiner or selector that joins nothing only hides a difference between two texts.
        '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' if previous.is_ascii() => push_code_point(c, out),
        c if c.is_control() || is_misleading(c) || is_blank(c) => push_code_point(c, out),
        c => out.push(c),
    }
}

/// Characters other than the space that take room without a mark, or none at all.
fn is_blank(c: char) -> bool {
    matches!(c,
        '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{206a}'..='\u{206f}'
        | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{ffa0}' | '\u{e0100}'..='\u{e01ef}')
}

/// Shortens `text` to about `limit` characters: its beginning, the number of omitted characters, its end.
pub fn shorten_middle(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text.to_owned();
    }
    let room = limit.saturating_sub("⟨… 000000 characters …⟩".chars().count()).max(2);
    let (first, last) = (room - room / 2, room / 2);
    let beginning: String = text.chars().take(first).collect();
    let end: String = text.chars().skip(count - last).collect();
    format!("{beginning}⟨… {} characters …⟩{end}", count - first - last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_a_part_of_a_command_is_written_out() {
        let padded = |blank: &str| format!("ls -la{}; touch X", blank.repeat(6000));
        for (text, expected) in [
            ("touch X #\rls -la".to_owned(), "touch X #^Mls -la"),
            ("rm \u{1b}[8m-rf\u{202e}\u{200b}\n".to_owned(), "rm ^[[8m-rf⟨U+202E⟩⟨U+200B⟩\n"),
            (padded(" "), "ls -la⟨6000 spaces⟩; touch X"),
            (padded("\t"), "ls -la⟨6000 tabs⟩; touch X"),
            (padded("\n"), "ls -la⟨6000 line breaks⟩\n; touch X"),
            ("a\u{a0}b\u{2800}c\u{3164}".to_owned(), "a⟨U+00A0⟩b⟨U+2800⟩c⟨U+3164⟩"),
            ("a\u{200d}b\u{fe01}".to_owned(), "a⟨U+200D⟩b⟨U+FE01⟩"),
            ("\u{1f468}\u{200d}\u{1f469} ok\tx".to_owned(), "\u{1f468}\u{200d}\u{1f469} ok\tx"),
            ("\u{9b}2J\u{85}\u{7f}\0".to_owned(), "⟨U+009B⟩2J⟨U+0085⟩^?^@"),
            ("\u{e0041}tag".to_owned(), "⟨U+E0041⟩tag"),
        ] {
            assert_eq!(visible_text(&text), expected);
        }
    }

    #[test]
    fn a_shortened_text_keeps_its_beginning_and_its_end() {
        assert_eq!(shorten_middle("short", 10), "short");
        let long = format!("begin{}end", "x".repeat(1000));
        let short = shorten_middle(&long, 60);
        assert!(
            short.starts_with("begin") && short.ends_with("end") && short.contains("characters"),
            "{short}"
        );
        assert!(short.chars().count() <= 60);
    }
}
