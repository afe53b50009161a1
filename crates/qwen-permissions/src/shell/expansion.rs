//! Words: quote removal, and the substitutions that can hide in a word.

use tree_sitter::Node;

use super::Word;
use super::layout::children;
use super::quoting::{StringPart, parts_of_string, quoted_text};
use super::statement::Reader;
use super::word::WordBuilder;

/// Most words that the braces of one word become.
const MAX_BRACE_WORDS: usize = 64;

impl Reader<'_> {
    /// Reads a word that may be several: lists in braces are written out where they are plain.
    pub(super) fn words(&mut self, node: Node<'_>) -> Vec<Word> {
        let is_text = matches!(node.kind(), "word" | "concatenation") && self.has_a_bare_brace(node);
        let mut words = Vec::new();
        if is_text && write_out_braces(self.text(node), &mut words) {
            return words.into_iter().map(Word::Literal).collect();
        }
        vec![self.word(node)]
    }

    /// Reads a word, and the commands inside of it.
    pub(super) fn word(&mut self, node: Node<'_>) -> Word {
        let raw = self.text(node);
        if self.has_a_bare_brace(node) && may_brace_expand(raw) {
            let prefix = raw.split('{').next().unwrap_or("");
            let prefix =
                if prefix.contains(['\\', '\'', '"', '$', '`', '*', '?', '[']) { "" } else { prefix }
                    .to_owned();
            let tail = raw.to_owned();
            self.part_of_word(node, &mut WordBuilder::default());
            return Word::Dynamic(super::Dynamic { prefix, splits: true, tail, ..super::Dynamic::default() });
        }
        let mut builder = WordBuilder::default();
        self.part_of_word(node, &mut builder);
        builder.finish()
    }

    /// True if a brace stands outside of quotes.
    fn has_a_bare_brace(&self, node: Node<'_>) -> bool {
        match node.kind() {
            "word" => self.text(node).contains('{'),
            "brace_expression" => true,
            "concatenation" => children(node).into_iter().any(|child| self.has_a_bare_brace(child)),
            _ => false,
        }
    }

    fn part_of_word(&mut self, node: Node<'_>, builder: &mut WordBuilder) {
        match node.kind() {
            "word" | "number" | "test_operator" | "==" | "=~" => builder.unquoted(self.text(node)),
            "raw_string" => {
                let raw = self.text(node);
                builder.quoted(raw.get(1..raw.len().saturating_sub(1)).unwrap_or(""));
            }
            "string" => self.string(node, builder),
            "concatenation" => {
                for child in children(node) {
                    self.part_of_word(child, builder);
                }
            }
            "simple_expansion" if matches!(self.text(node), "$?" | "$#" | "$$" | "$!") => {
                builder.shell_number();
            }
            "simple_expansion" | "expansion" if let Some(value) = self.loop_value(self.text(node)) => {
                builder.quoted(value);
            }
            "simple_expansion" => builder.expansion(true),
            "expansion" => {
                self.expansion(node);
                builder.expansion(true);
                // A plain `${name}` has three parts; what has more is worked out.
                builder.made |= children(node).len() > 3;
            }
            "command_substitution" => {
                self.substitution(node);
                builder.making(true);
            }
            "process_substitution" => {
                self.substitution(node);
                builder.quoted("/dev/fd/");
                builder.making(false);
            }
            // That there are only numbers in it was checked; where there are not, commands may be found.
            "arithmetic_expansion" => {
                self.anything(node, false);
                builder.making(true);
            }
            "brace_expression" => builder.making(true),
            "ansi_c_string" | "translated_string" => {
                self.reject("it has a string with a dollar sign in front in it");
                builder.making(true);
            }
            kind => {
                let reason = format!("it has a word in it that is not understood ({kind})");
                self.reject(reason);
                self.anything(node, false);
                builder.making(true);
            }
        }
    }

    fn string(&mut self, node: Node<'_>, builder: &mut WordBuilder) {
        let source = self.source;
        let parts = match parts_of_string(node, source) {
            Ok(parts) => parts,
            Err(reason) => {
                self.reject(reason);
                self.anything(node, false);
                builder.expansion(true);
                return;
            }
        };
        for part in parts {
            match part {
                StringPart::Text(raw) => match quoted_text(raw) {
                    Ok(text) => builder.quoted(&text),
                    Err(reason) => {
                        self.reject(reason);
                        builder.expansion(true);
                    }
                },
                StringPart::Expansion(child) if let Some(value) = self.loop_value(self.text(child)) => {
                    builder.quoted(value);
                }
                StringPart::Expansion(child) => {
                    // Quoted, it stays one word, except for the one variable that is a list.
                    let splits = self.text(child).contains(['@', '*']);
                    let mut inner = WordBuilder::default();
                    self.part_of_word(child, &mut inner);
                    builder.quoted_expansion(&inner, splits, child.kind() == "command_substitution");
                }
            }
        }
    }

    /// `${…}`: only the forms that look at a value. Indirection, subscripts, substrings and `@P` evaluate it.
    fn expansion(&mut self, node: Node<'_>) {
        let parts = children(node);
        let kinds: Vec<&str> = parts.iter().map(tree_sitter::Node::kind).collect();
        let values = match kinds.as_slice() {
            ["${", "variable_name" | "special_variable_name", "}"] | ["${", "#", "variable_name", "}"] => {
                return;
            }
            [
                "${",
                "variable_name",
                ":-" | "-" | ":+" | "+" | ":?" | "?" | "%" | "%%" | "#" | "##",
                ..,
                "}",
            ] => &parts[3..parts.len() - 1],
            ["${", "subscript", "}"] | ["${", "#", "subscript", "}"] if self.is_plain_subscript(&parts) => {
                return;
            }
            _ => {
                self.reject("it has an expansion in it that is not understood");
                self.anything(node, false);
                return;
            }
        };
        for value in values {
            self.default_value(*value);
        }
    }

    /// True if a subscript is a number or all of the array, and so needs no evaluation.
    fn is_plain_subscript(&self, parts: &[Node<'_>]) -> bool {
        let subscript = parts.iter().find(|part| part.kind() == "subscript");
        let inside = subscript.and_then(|subscript| self.text(*subscript).split_once('['));
        inside.and_then(|(_, index)| index.strip_suffix(']')).is_some_and(|index| {
            matches!(index, "@" | "*")
                || (!index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()))
        })
    }

    /// The word inside of `${…}`, where quotes mean other things than elsewhere.
    fn default_value(&mut self, node: Node<'_>) {
        match node.kind() {
            "word" | "number" | "regex" | "variable_name"
                if self
                    .text(node)
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b" _./:,@%+=*?-".contains(&byte)) => {}
            "simple_expansion" => {}
            "expansion" => self.expansion(node),
            "command_substitution" => self.substitution(node),
            "concatenation" => children(node).into_iter().for_each(|child| self.default_value(child)),
            _ => {
                self.reject("it has an expansion in it that is not understood");
                self.anything(node, false);
            }
        }
    }
}

/// Appends the words that bash makes of one with lists in braces. False where the word is not plain enough.
fn write_out_braces(raw: &str, words: &mut Vec<String>) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./,{}-".contains(&byte);
    if !raw.bytes().all(is_plain) || raw.contains("..") || words.len() >= MAX_BRACE_WORDS {
        return false;
    }
    let Some((before, rest)) = raw.split_once('{') else {
        let is_word = !raw.contains('}');
        words.push(raw.to_owned());
        return is_word;
    };
    let Some((list, after)) = rest.split_once('}') else { return false };
    if before.contains('}') || list.contains('{') || !list.contains(',') {
        return false;
    }
    list.split(',').all(|item| write_out_braces(&format!("{before}{item}{after}"), words))
}

/// True if bash may make several words of one because of its braces: there is a list or a range between them.
fn may_brace_expand(raw: &str) -> bool {
    let Some((open, close)) = raw.find('{').zip(raw.rfind('}')) else { return false };
    raw.get(open..close).is_some_and(|inside| inside.contains(',') || inside.contains(".."))
}
