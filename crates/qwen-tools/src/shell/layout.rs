//! The check that the grammar has cut a line where bash cuts it.
//!
//! Every byte must belong to a token whose text means one thing only, or be blank space between two tokens that bash
//! separates too. What the grammar skips, joins or guesses is found here, so that the readers of the tree may trust it.

use tree_sitter::Node;

/// How deep a tree may be.
const MAX_TREE_DEPTH: usize = 150;

type Verdict = Result<(), &'static str>;

/// Checks a whole tree.
pub(super) fn verify(root: Node<'_>, source: &str) -> Verdict {
    if root.has_error() {
        return Err("its syntax is not understood");
    }
    let layout = Layout { source };
    layout.blank(0, root.start_byte())?;
    layout.blank(root.end_byte(), source.len())?;
    layout.node(root, 0)
}

/// Whether a node stands for a whole statement.
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
pub(super) fn children<'tree>(node: Node<'tree>) -> Vec<Node<'tree>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

struct Layout<'a> {
    source: &'a str,
}

impl Layout<'_> {
    fn text(&self, node: Node<'_>) -> &str {
        &self.source[node.byte_range()]
    }

    fn node(&self, node: Node<'_>, depth: usize) -> Verdict {
        if depth > MAX_TREE_DEPTH {
            return Err("it is nested too deeply");
        }
        match node.kind() {
            "string" => return self.string(node, depth),
            "heredoc_redirect" => return self.heredoc(node, depth),
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
                Some(previous) => self.between(node, previous, child)?,
            }
            self.node(child, depth + 1)?;
            previous = Some(child);
            begin = child.end_byte();
        }
        self.blank(begin, node.end_byte())
    }

    /// Text outside of every node: only blank space and comments.
    fn blank(&self, start: usize, end: usize) -> Verdict {
        let text = self.source.get(start..end).unwrap_or("?");
        if text.chars().all(|character| matches!(character, ' ' | '\t' | '\n')) {
            return Ok(());
        }
        Err("it has text in it that the grammar skips")
    }

    /// What stands between two tokens of a node.
    fn between(&self, parent: Node<'_>, previous: Node<'_>, next: Node<'_>) -> Verdict {
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
        if is_one_word(parent) || parent.kind() == "arithmetic_expansion" || in_arithmetic(parent) {
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
            "word" | "heredoc_start" | "test_operator" => return self.plain_word(node, text),
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
    fn plain_word(&self, node: Node<'_>, text: &str) -> Verdict {
        let starts_a_word = node.parent().is_none_or(|parent| {
            parent.kind() != "concatenation" || parent.start_byte() == node.start_byte()
        });
        if starts_a_word && text.starts_with('#') {
            return Err("it has a comment in it that can be read as a word");
        }
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

    /// A double-quoted string: what the grammar calls its parts is not relied on, apart from the substitutions.
    fn string(&self, node: Node<'_>, depth: usize) -> Verdict {
        for part in parts_of_string(node, self.source)? {
            match part {
                StringPart::Text(text) => quoted_text(text).map(|_| ())?,
                StringPart::Expansion(child) => self.node(child, depth + 1)?,
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

    fn comment(&self, node: Node<'_>) -> Verdict {
        let before = self.source[..node.start_byte()].chars().next_back();
        let after = self.source[node.end_byte()..].chars().next();
        let begins = matches!(before, None | Some(' ' | '\t' | '\n' | ';'));
        let ends = matches!(after, None | Some('\n'));
        if begins && ends && self.text(node).starts_with('#') && !self.text(node).contains('\n') {
            return Ok(());
        }
        Err("it has a comment in it that can be read as a word")
    }

    /// A here-document: where it ends is found once more by bash's own rule and must be the same.
    fn heredoc(&self, node: Node<'_>, depth: usize) -> Verdict {
        const ODD: &str = "its here-document is not understood";
        let parts = children(node);
        let find = |kind: &str| parts.iter().copied().find(|part| part.kind() == kind);
        let (Some(start), Some(body), Some(end)) =
            (find("heredoc_start"), find("heredoc_body"), find("heredoc_end"))
        else {
            return Err(ODD);
        };
        let Some((delimiter, quoted)) = delimiter(self.text(start)) else { return Err(ODD) };
        let Some(line_end) = self.source[start.end_byte()..].find('\n') else { return Err(ODD) };
        let first_line = start.end_byte() + line_end + 1;
        let strips_tabs = parts.iter().any(|part| part.kind() == "<<-");
        let mut at = first_line;
        let last_line = loop {
            let Some(rest) = self.source.get(at..).filter(|rest| !rest.is_empty()) else { return Err(ODD) };
            let line = rest.split('\n').next().unwrap_or(rest);
            let stripped = if strips_tabs { line.trim_start_matches('\t') } else { line };
            if stripped == delimiter {
                break at + line.len() - stripped.len();
            }
            at += line.len() + 1;
        };
        if end.start_byte() != last_line || self.text(end) != delimiter || body.start_byte() < first_line {
            return Err(ODD);
        }
        let mut previous: Option<Node<'_>> = None;
        for part in &parts {
            match part.kind() {
                "comment" => return Err(ODD),
                "heredoc_body" | "heredoc_end" => continue,
                _ => {}
            }
            if part.end_byte() >= first_line {
                return Err(ODD);
            }
            if let Some(previous) = previous {
                if !matches!(previous.kind(), "<<" | "<<-" | "file_descriptor") {
                    self.between(node, previous, *part)?;
                }
            }
            if part.kind() != "heredoc_start" {
                self.node(*part, depth + 1)?;
            }
            previous = Some(*part);
        }
        let Some(previous) = previous else { return Err(ODD) };
        self.blank(previous.end_byte(), first_line)?;
        if quoted {
            return Ok(());
        }
        let mut at = first_line;
        for child in children(body) {
            if child.kind() == "heredoc_content" {
                continue;
            }
            self.expanded_text(at, child.start_byte())?;
            self.node(child, depth + 1)?;
            at = child.end_byte();
        }
        self.expanded_text(at, last_line)
    }

    /// Text in which bash expands, and which must not have anything to expand.
    fn expanded_text(&self, start: usize, end: usize) -> Verdict {
        match self.source.get(start..end) {
            Some(text) if !text.contains(['$', '`', '\\']) => Ok(()),
            _ => Err("its here-document has something in it that bash may expand"),
        }
    }
}

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
    const ODD: &str = "it has a string in it that is not understood";
    let text = source.get(node.byte_range()).unwrap_or("");
    if text.len() < 2 || !text.starts_with('"') || !text.ends_with('"') {
        return Err(ODD);
    }
    let mut parts = Vec::new();
    let mut at = node.start_byte() + 1;
    let end = node.end_byte() - 1;
    for child in children(node) {
        match child.kind() {
            "string_content" | "\"" | "$" => continue,
            "simple_expansion" | "expansion" | "command_substitution" | "arithmetic_expansion" => {}
            _ => return Err(ODD),
        }
        // The grammar counts blanks in front of a substitution to the substitution.
        let raw = source.get(child.byte_range()).unwrap_or("");
        let begins = child.start_byte() + (raw.len() - raw.trim_start().len());
        parts.push(StringPart::Text(source.get(at..begins).ok_or(ODD)?));
        parts.push(StringPart::Expansion(child));
        at = child.end_byte();
    }
    parts.push(StringPart::Text(source.get(at..end).ok_or(ODD)?));
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
                    text.push('$')
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

/// The word that ends a here-document, and whether it is quoted.
fn delimiter(raw: &str) -> Option<(&str, bool)> {
    let unquoted = [('\'', '\''), ('"', '"')]
        .iter()
        .find_map(|(open, close)| raw.strip_prefix(*open)?.strip_suffix(*close))
        .or_else(|| raw.strip_prefix('\\'));
    let word = unquoted.unwrap_or(raw);
    let plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain.then_some((word, unquoted.is_some()))
}

/// Whether the grammar lost a word `-` between a command and its here-document, as it does.
pub(super) fn lost_dash(command: Node<'_>, heredoc: Node<'_>, source: &str) -> bool {
    command.kind() == "command"
        && heredoc.kind() == "heredoc_redirect"
        && source.get(command.end_byte()..heredoc.start_byte()) == Some(" - ")
}

/// Whether statements of this node need something between them.
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

/// Whether a token ends a list of statements by a word that only counts at the beginning of a command.
fn closes_a_list(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "}" | "do" | "done" | "then" | "fi" | "do_group" | "elif_clause" | "else_clause" | "elif" | "else"
    )
}

/// Whether a line break between two parts of a node means no more than a blank, or ends a command.
fn newline_may_stand(parent: Node<'_>, previous: Node<'_>, next: Node<'_>) -> bool {
    match parent.kind() {
        "program"
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
    while let Some(child) =
        u32::try_from(node.child_count()).ok().and_then(|count| node.child(count.checked_sub(1)?))
    {
        node = child;
    }
    node
}

/// Whether a token is one of the operators that end a word wherever they stand.
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

/// Whether a token opens a substitution, after which a command begins.
fn opens_a_list(node: Node<'_>) -> bool {
    matches!(node.kind(), "$(" | "<(" | ">(")
}

/// Whether the parts of a node make one word, so that nothing may stand between them.
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

/// Whether a node is a part of an arithmetic expression.
fn in_arithmetic(node: Node<'_>) -> bool {
    let mut node = node;
    while matches!(
        node.kind(),
        "binary_expression"
            | "unary_expression"
            | "ternary_expression"
            | "parenthesized_expression"
            | "postfix_expression"
    ) {
        match node.parent() {
            Some(parent) => node = parent,
            None => return false,
        }
    }
    node.kind() == "arithmetic_expansion"
}
