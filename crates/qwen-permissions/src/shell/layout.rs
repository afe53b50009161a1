//! Checks that the grammar splits a line where bash does.
//!
//! Every byte must belong to a token whose text means one thing only, or be blank space between two tokens
//! that bash separates too. What the grammar skips, joins or guesses is found here, so that the readers of
//! the tree may trust it.

use tree_sitter::Node;

use super::heredoc::lost_dash;
use super::quoting::{StringPart, parts_of_string, quoted_text};

/// How deep a tree may be.
const MAX_TREE_DEPTH: u32 = 200;

pub(super) type Verdict = Result<(), &'static str>;

/// True if a tree is deeper than it is safe to walk.
pub(super) fn is_too_deep(root: Node<'_>) -> bool {
    let mut cursor = root.walk();
    loop {
        if cursor.depth() > MAX_TREE_DEPTH {
            return true;
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return false;
            }
        }
    }
}

/// Checks a whole tree.
pub(super) fn verify(root: Node<'_>, source: &str) -> Verdict {
    if root.has_error() {
        return Err("its syntax is not understood");
    }
    let layout = Layout { source };
    layout.blank(0, root.start_byte())?;
    layout.blank(root.end_byte(), source.len())?;
    layout.node(root)
}

/// True if a node is a whole statement.
pub(super) fn is_statement(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "case_statement"
            | "command"
            | "compound_statement"
            | "declaration_command"
            | "for_statement"
            | "function_definition"
            | "if_statement"
            | "list"
            | "negated_command"
            | "pipeline"
            | "redirected_statement"
            | "subshell"
            | "test_command"
            | "unset_command"
            | "variable_assignment"
            | "variable_assignments"
            | "while_statement"
    )
}

/// The children of a node.
pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

/// The source of a node; something that no check accepts where the node cuts a character in two.
pub(super) fn text_of<'source>(node: Node<'_>, source: &'source str) -> &'source str {
    source.get(node.byte_range()).unwrap_or("\0")
}

pub(super) struct Layout<'a> {
    pub(super) source: &'a str,
}

impl Layout<'_> {
    pub(super) fn text(&self, node: Node<'_>) -> &str {
        text_of(node, self.source)
    }

    pub(super) fn node(&self, node: Node<'_>) -> Verdict {
        match node.kind() {
            "string" => return self.string(node),
            "heredoc_redirect" => return self.heredoc(node),
            "arithmetic_expansion" => return self.arithmetic(node),
            "number" if node.child_count() > 0 => return Err("it computes a number from a substitution"),
            _ if node.child_count() == 0 => return self.token(node),
            "command_substitution" if self.text(node).starts_with('`') => self.backticks(node)?,
            _ => {}
        }
        let mut previous: Option<Node<'_>> = None;
        let mut begin = node.start_byte();
        for child in children(node) {
            if child.kind() == "comment" {
                self.comment(child)?;
                begin = child.end_byte();
                continue;
            }
            match previous {
                None => self.blank(begin, child.start_byte())?,
                Some(previous) => self.check_gap(node, previous, child)?,
            }
            let begins_a_word = node.kind() != "concatenation" || previous.is_none();
            if begins_a_word && child.kind() == "word" && self.text(child).starts_with('#') {
                return Err("it has a comment in it that can be read as a word");
            }
            self.node(child)?;
            previous = Some(child);
            begin = child.end_byte();
        }
        self.blank(begin, node.end_byte())
    }

    /// Text outside of every node: only blank space and comments.
    pub(super) fn blank(&self, start: usize, end: usize) -> Verdict {
        let text = self.source.get(start..end).unwrap_or("?");
        if text.chars().all(|character| matches!(character, ' ' | '\t' | '\n')) {
            return Ok(());
        }
        Err("it has text in it that the grammar skips")
    }

    /// The text between two tokens of a node.
    pub(super) fn check_gap(&self, parent: Node<'_>, previous: Node<'_>, next: Node<'_>) -> Verdict {
        if parent.kind() == "redirected_statement" && lost_dash(previous, next, self.source) {
            return Ok(());
        }
        let gap = self.gap(previous, next)?;
        let separated = gap.contains('\n') || matches!(previous.kind(), ";" | "&" | ";;");
        if is_statement(previous)
            && (is_statement(next) || closes_a_list(next))
            && !separated
            && ends_list(parent)
        {
            return Err("two commands stand in it with nothing between them");
        }
        if gap.contains('\n') {
            return if newline_may_stand(parent, previous, next) {
                Ok(())
            } else {
                Err("it has a line break where bash sees the end of a command")
            };
        }
        if gap.is_empty() && last_token(previous).end_byte() < next.start_byte() {
            return Err("a line continuation joins two of its words");
        }
        if gap.is_empty() {
            return self.touching(parent, previous, next);
        }
        if is_one_word(parent) {
            return Err("it has a blank in it where the grammar sees none");
        }
        Ok(())
    }

    /// The blank space between two nodes, comments and line continuations left out.
    fn gap(&self, previous: Node<'_>, next: Node<'_>) -> Result<String, &'static str> {
        let text = self.source.get(last_token(previous).end_byte()..next.start_byte()).unwrap_or("?");
        let mut gap = String::new();
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            match character {
                ' ' | '\t' | '\n' => gap.push(character),
                '\\' if rest.next() == Some('\n') => {}
                // Comments were checked by themselves: they reach to the end of their line.
                '#' if gap.ends_with([' ', '\t', '\n'])
                    || matches!(previous.kind(), ";" | "&" | "|" | "&&" | "||") =>
                {
                    gap.push(' ');
                    if rest.any(|character| character == '\n') {
                        gap.push('\n');
                    }
                }
                _ => return Err("it has text in it that the grammar skips"),
            }
        }
        Ok(gap)
    }

    /// Two tokens with nothing between them.
    fn touching(&self, parent: Node<'_>, previous: Node<'_>, next: Node<'_>) -> Verdict {
        if is_one_word(parent) {
            return Ok(());
        }
        let last = last_token(previous);
        let first = first_token(next);
        match (is_operator(last) || opens_a_list(last), is_operator(first)) {
            (true, true) => {
                let before = self.text(last);
                let after = self.text(first);
                let apart = match before {
                    ")" => after != "(",
                    ";" | "&" | "|" | "&&" | "||" | "|&" | ";;" => {
                        after == "(" || (after == ")" && before != "|")
                    }
                    "(" if matches!(parent.kind(), "function_definition" | "array") => after == ")",
                    "(" | "$(" | "<(" | ">(" => after == "<",
                    _ => false,
                };
                if apart { Ok(()) } else { Err("its operators can be read in two ways") }
            }
            (false, false) => {
                if parent.kind() == "command_substitution" {
                    return Ok(());
                }
                Err("two of its words touch each other")
            }
            _ => Ok(()),
        }
    }

    /// A token that has no parts.
    fn token(&self, node: Node<'_>) -> Verdict {
        let text = self.text(node);
        let fine = match node.kind() {
            "word" | "heredoc_start" | "test_operator" => return Self::plain_word(text),
            "raw_string" => {
                text.starts_with('\'')
                    && text.bytes().filter(|byte| *byte == b'\'').count() == 2
                    && text.ends_with('\'')
            }
            "number" => text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'#'),
            "variable_name" => {
                !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            }
            "special_variable_name" => text.len() == 1,
            "file_descriptor" => text.bytes().all(|byte| byte.is_ascii_digit()),
            "regex" | "extglob_pattern" => {
                !text.is_empty()
                    && text
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"_.,:@%+=*?/^-".contains(&byte))
            }
            // The grammar counts blanks in front of a substitution inside of a string to the substitution.
            kind @ ("$" | "${" | "$(" | "$((" | "`") => text.trim_start_matches([' ', '\t', '\n']) == kind,
            kind if !node.is_named() => kind == text,
            _ => false,
        };
        if fine { Ok(()) } else { Err("it has a part in it that is not understood") }
    }

    /// An unquoted word must not have anything in it that bash could read as more than a letter.
    fn plain_word(text: &str) -> Verdict {
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    None | Some('\n') => return Err("it has a line continuation inside of a word"),
                    Some(_) => {}
                },
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '"' | '\'' => {
                    return Err("it has a word in it that bash reads as more than one");
                }
                '!' => {
                    if characters
                        .peek()
                        .is_some_and(|next| next.is_alphanumeric() || matches!(next, '!' | '?' | '#'))
                    {
                        return Err("it has a history expansion in it");
                    }
                }
                _ if character.is_ascii() => {}
                _ => {
                    let mut bytes = [0; 4];
                    if character.encode_utf8(&mut bytes).bytes().any(|byte| byte == 0x85 || byte == 0xA0) {
                        return Err("it has a character in it that some shells take for a blank");
                    }
                }
            }
        }
        Ok(())
    }

    /// A double-quoted string: what the grammar calls its parts is not relied on, apart from the
    /// substitutions.
    fn string(&self, node: Node<'_>) -> Verdict {
        for part in parts_of_string(node, self.source)? {
            match part {
                StringPart::Text(text) => quoted_text(text).map(|_| ())?,
                StringPart::Expansion(child) => self.node(child)?,
            }
        }
        Ok(())
    }

    /// Backticks: bash removes backslashes in them before it reads them, which the grammar does not.
    fn backticks(&self, node: Node<'_>) -> Verdict {
        let text = self.text(node);
        let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("`");
        if inner.contains(['\\', '`', '"', '\'']) || !text.ends_with('`') {
            return Err("it has quotes inside of backticks");
        }
        Ok(())
    }

    /// `$((…))` with nothing in it but numbers: everything else is evaluated, and may hold a substitution.
    fn arithmetic(&self, node: Node<'_>) -> Verdict {
        let text = self.text(node);
        let inner = text.strip_prefix("$((").and_then(|text| text.strip_suffix("))")).unwrap_or("?x");
        if inner.bytes().all(|byte| byte.is_ascii_digit() || b" +-*/%()<>=!&|^~?:".contains(&byte)) {
            return Ok(());
        }
        Err("it evaluates something other than numbers")
    }

    fn comment(&self, node: Node<'_>) -> Verdict {
        let before = self.source.get(..node.start_byte()).unwrap_or("?");
        let after = self.source.get(node.end_byte()..).unwrap_or("?").chars().next();
        // Behind a backslash the character belongs to a word, and so does `#` after it.
        let is_escaped = |character: char| before.trim_end_matches(character).ends_with('\\');
        let begins = match before.chars().next_back() {
            None => true,
            Some(separator @ (' ' | '\t' | '\n' | ';')) => !is_escaped(separator),
            Some(_) => false,
        };
        let ends = matches!(after, None | Some('\n'));
        if begins && ends && self.text(node).starts_with('#') && !self.text(node).contains('\n') {
            return Ok(());
        }
        Err("it has a comment in it that can be read as a word")
    }
}

/// True if statements of this node need something between them.
fn ends_list(parent: Node<'_>) -> bool {
    !matches!(
        parent.kind(),
        "pipeline"
            | "list"
            | "command"
            | "declaration_command"
            | "redirected_statement"
            | "variable_assignments"
            | "heredoc_redirect"
    )
}

/// True if a token ends a list of statements by a word that only counts at the beginning of a command.
fn closes_a_list(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "}" | "do" | "done" | "then" | "fi" | "do_group" | "elif_clause" | "else_clause" | "elif" | "else"
    )
}

/// True if a line break between two parts of a node means no more than a blank, or ends a command.
fn newline_may_stand(parent: Node<'_>, previous: Node<'_>, next: Node<'_>) -> bool {
    match parent.kind() {
        "array"
        | "program"
        | "subshell"
        | "compound_statement"
        | "do_group"
        | "if_statement"
        | "elif_clause"
        | "else_clause"
        | "while_statement"
        | "command_substitution"
        | "process_substitution" => true,
        "pipeline" | "list" => matches!(previous.kind(), "|" | "|&" | "&&" | "||"),
        "for_statement" => next.kind() == "do_group",
        "case_statement" => previous.kind() == "in" || previous.kind() == "case_item",
        "case_item" => previous.kind() == ")" || is_statement(previous) || previous.kind() == ";",
        _ => false,
    }
}

fn first_token(node: Node<'_>) -> Node<'_> {
    let mut node = node;
    while let Some(child) = node.child(0) {
        node = child;
    }
    node
}

fn last_token(node: Node<'_>) -> Node<'_> {
    let mut node = node;
    while let Some(child) = node.child_count().checked_sub(1).and_then(|last| node.child(last)) {
        node = child;
    }
    node
}

/// True if a token is one of the operators that end a word wherever they stand.
fn is_operator(node: Node<'_>) -> bool {
    !node.is_named()
        && matches!(
            node.kind(),
            ";" | ";;"
                | "&"
                | "&&"
                | "|"
                | "||"
                | "|&"
                | "("
                | ")"
                | "<"
                | ">"
                | ">>"
                | "&>"
                | "&>>"
                | "<&"
                | ">&"
                | ">|"
                | "<&-"
                | ">&-"
                | "<<<"
                | "<<"
                | "<<-"
        )
}

/// True if a token opens a substitution, after which a command begins.
fn opens_a_list(node: Node<'_>) -> bool {
    matches!(node.kind(), "$(" | "<(" | ">(")
}

/// True if the parts of a node make one word, so that nothing may stand between them.
fn is_one_word(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "concatenation"
            | "simple_expansion"
            | "expansion"
            | "variable_assignment"
            | "brace_expression"
            | "subscript"
    )
}
