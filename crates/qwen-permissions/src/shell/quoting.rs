//! Double-quoted strings: splits them at substitutions and removes the quotes.

use tree_sitter::Node;

use super::layout::children;

/// A part of a double-quoted string.
pub(super) enum StringPart<'source, 'tree> {
    /// Text, as written.
    Text(&'source str),
    /// A substitution.
    Expansion(Node<'tree>),
}

/// Cuts a double-quoted string at its substitutions.
pub(super) fn parts_of_string<'source, 'tree>(
    node: Node<'tree>,
    source: &'source str,
) -> Result<Vec<StringPart<'source, 'tree>>, &'static str> {
    const NOT_UNDERSTOOD: &str = "it has a string in it that is not understood";
    let text = source.get(node.byte_range()).unwrap_or("");
    if text.len() < 2 || !text.starts_with('"') || !text.ends_with('"') {
        return Err(NOT_UNDERSTOOD);
    }
    let mut parts = Vec::new();
    let mut at = node.start_byte() + 1;
    let end = node.end_byte() - 1;
    for child in children(node) {
        match child.kind() {
            "string_content" | "\"" | "$" => continue,
            "simple_expansion" | "expansion" | "command_substitution" | "arithmetic_expansion" => {}
            _ => return Err(NOT_UNDERSTOOD),
        }
        // The grammar counts blanks in front of a substitution to the substitution.
        let raw = source.get(child.byte_range()).unwrap_or("");
        let begins = child.start_byte() + (raw.len() - raw.trim_start().len());
        parts.push(StringPart::Text(source.get(at..begins).ok_or(NOT_UNDERSTOOD)?));
        parts.push(StringPart::Expansion(child));
        at = child.end_byte();
    }
    parts.push(StringPart::Text(source.get(at..end).ok_or(NOT_UNDERSTOOD)?));
    Ok(parts)
}

/// Takes the quotes off a piece of a double-quoted string that has nothing in it that expands.
pub(super) fn quoted_text(raw: &str) -> Result<String, &'static str> {
    let mut text = String::with_capacity(raw.len());
    let mut characters = raw.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('\n') => {}
                Some(escaped @ ('$' | '`' | '"' | '\\')) => text.push(escaped),
                Some(other) => {
                    text.push('\\');
                    text.push(other);
                }
                None => return Err("a quote in it is not closed"),
            },
            '"' | '`' => return Err("its quotes are not understood"),
            '$' => match characters.peek() {
                None | Some(' ' | '\n' | '/' | '|' | ')' | '.' | ',' | ';' | ':' | '%' | '^') => {
                    text.push('$');
                }
                Some(_) => return Err("it has an expansion in it that is not understood"),
            },
            '!' if characters.peek().is_some_and(|next| next.is_alphanumeric() || *next == '!') => {
                return Err("it has a history expansion in it");
            }
            other => text.push(other),
        }
    }
    Ok(text)
}
