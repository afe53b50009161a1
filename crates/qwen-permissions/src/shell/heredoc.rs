//! Checks that the grammar ends here-documents where bash does.

use tree_sitter::Node;

use super::layout::{Layout, Verdict, children};

impl Layout<'_> {
    /// A here-document: where it ends is found once more by bash's own rule and must be the same.
    pub(super) fn heredoc(&self, node: Node<'_>) -> Verdict {
        const NOT_UNDERSTOOD: &str = "its here-document is not understood";
        let parts = children(node);
        let find = |kind: &str| parts.iter().copied().find(|part| part.kind() == kind);
        let (Some(start), Some(body), Some(end)) =
            (find("heredoc_start"), find("heredoc_body"), find("heredoc_end"))
        else {
            return Err(NOT_UNDERSTOOD);
        };
        let Some((delimiter, quoted)) = delimiter(self.text(start)) else { return Err(NOT_UNDERSTOOD) };
        let Some(line_end) = self.source.get(start.end_byte()..).and_then(|rest| rest.find('\n')) else {
            return Err(NOT_UNDERSTOOD);
        };
        let first_line = start.end_byte() + line_end + 1;
        let strips_tabs = parts.iter().any(|part| part.kind() == "<<-");
        let mut at = first_line;
        let last_line = loop {
            let Some(rest) = self.source.get(at..).filter(|rest| !rest.is_empty()) else {
                return Err(NOT_UNDERSTOOD);
            };
            let line = rest.split('\n').next().unwrap_or(rest);
            let stripped = if strips_tabs { line.trim_start_matches('\t') } else { line };
            if stripped == delimiter {
                break at + line.len() - stripped.len();
            }
            at += line.len() + 1;
        };
        if end.start_byte() != last_line || self.text(end) != delimiter || body.start_byte() < first_line {
            return Err(NOT_UNDERSTOOD);
        }
        let mut previous: Option<Node<'_>> = None;
        for part in &parts {
            match part.kind() {
                "comment" => return Err(NOT_UNDERSTOOD),
                "heredoc_body" | "heredoc_end" => continue,
                _ => {}
            }
            if part.end_byte() >= first_line {
                return Err(NOT_UNDERSTOOD);
            }
            if let Some(previous) = previous
                && !matches!(previous.kind(), "<<" | "<<-" | "file_descriptor")
            {
                self.check_gap(node, previous, *part)?;
            }
            if part.kind() != "heredoc_start" {
                self.node(*part)?;
            }
            previous = Some(*part);
        }
        let Some(previous) = previous else { return Err(NOT_UNDERSTOOD) };
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
            self.node(child)?;
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

/// True if the grammar lost a word `-` between a command and its here-document, as it does.
pub(super) fn lost_dash(command: Node<'_>, heredoc: Node<'_>, source: &str) -> bool {
    command.kind() == "command"
        && heredoc.kind() == "heredoc_redirect"
        && source.get(command.end_byte()..heredoc.start_byte()) == Some(" - ")
}
