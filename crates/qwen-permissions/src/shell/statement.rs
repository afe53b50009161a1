//! Statements: from the tree to the simple commands in it.
//!
//! Every kind of node that is read here is named. Any other makes the line unanalysable, and is still looked
//! into, so that denied programs inside of it are found.

use tree_sitter::Node;

use super::heredoc::lost_dash;
use super::layout::{children, is_statement, text_of};
use super::{Analysis, Assignment, RedirectionKind, SimpleCommand, Word, builtins, note};

/// Reads a tree into an analysis.
pub(super) struct Reader<'a> {
    /// The script that the tree was made from.
    pub(super) source: &'a str,
    /// How many levels of nested scripts may still follow.
    pub(super) depth: usize,
    pub(super) analysis: &'a mut Analysis,
    /// The variables of the loops around a node, with the value of the iteration that is read.
    pub(super) loop_values: Vec<(String, String)>,
}

/// The most iterations of a loop that are read one by one.
const MAX_ITERATIONS: usize = 16;

/// How many loops in each other are read so.
const MAX_LOOPS: usize = 2;

impl Reader<'_> {
    /// Reads a whole script.
    pub(super) fn program(&mut self, root: Node<'_>, in_background: bool) {
        self.list(root, in_background);
    }

    /// Reads a node whose children are statements and the words between them.
    fn list(&mut self, node: Node<'_>, in_background: bool) {
        let parts = children(node);
        for (index, part) in parts.iter().enumerate() {
            let beside = parts.get(index + 1).is_some_and(|next| next.kind() == "&");
            self.part(*part, in_background || beside);
        }
    }

    fn part(&mut self, node: Node<'_>, in_background: bool) {
        match node.kind() {
            "comment" => {}
            "do_group" | "elif_clause" | "else_clause" => self.list(node, in_background),
            "case_item" => self.case_item(node, in_background),
            ";" | "&" | "&&" | "||" | "|" | "|&" | "(" | ")" | "{" | "}" | "!" | ";;" | "do" | "done"
            | "while" | "until" | "if" | "then" | "elif" | "else" | "fi" | "$(" | "<(" | ">(" | "`" => {}
            _ => self.statement(node, in_background),
        }
    }

    pub(super) fn statement(&mut self, node: Node<'_>, in_background: bool) {
        match node.kind() {
            "command" => self.command(node, Vec::new(), false, in_background),
            "redirected_statement" => self.redirected(node, in_background),
            "pipeline" | "list" | "subshell" | "compound_statement" | "negated_command" | "if_statement"
            | "while_statement" => self.list(node, in_background),
            "for_statement" => self.for_statement(node, in_background),
            "case_statement" => self.case_statement(node, in_background),
            "variable_assignment" | "variable_assignments" => self.bare_assignments(node, in_background),
            "test_command" => self.test_command(node, in_background),
            "declaration_command" => self.declaration(node, in_background),
            "function_definition" => self.function(node, in_background),
            kind => {
                let reason = format!("it has a part in it that is not understood ({kind})");
                self.reject(reason);
                self.anything(node, in_background);
            }
        }
    }

    /// A function: its body is as good as any other part of the line. Its arguments are only known when it runs.
    fn function(&mut self, node: Node<'_>, in_background: bool) {
        self.analysis.defines_functions = true;
        for part in children(node) {
            match part.kind() {
                "function" | "(" | ")" | "comment" => {}
                "word" => {
                    let name = self.text(part);
                    let is_plain =
                        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
                    if !is_plain || builtins::is_taken(name) {
                        self.reject("it defines a function in the place of a command of the shell");
                    }
                }
                "compound_statement" => self.statement(part, in_background),
                _ => {
                    self.reject("it defines a function in a way that is not understood");
                    self.anything(part, in_background);
                }
            }
        }
    }

    /// Looks for statements in a node that is not understood.
    pub(super) fn anything(&mut self, node: Node<'_>, in_background: bool) {
        for child in children(node) {
            if is_statement(child) {
                self.statement(child, in_background);
            } else {
                self.anything(child, in_background);
            }
        }
    }

    /// Records why the line is not fully understood.
    pub(super) fn reject(&mut self, reason: impl Into<String>) {
        note(self.analysis, reason);
    }

    /// The source of a node.
    pub(super) fn text(&self, node: Node<'_>) -> &str {
        text_of(node, self.source)
    }

    fn for_statement(&mut self, node: Node<'_>, in_background: bool) {
        let mut variable = String::new();
        let mut values = Vec::new();
        for part in children(node) {
            match part.kind() {
                "for" | "in" | ";" | "comment" => {}
                "variable_name" => self.text(part).clone_into(&mut variable),
                "do_group" => self.iterations(part, &variable, &values, in_background),
                "select" => self.reject("it asks the terminal for a choice"),
                _ => values.push(self.word(part)),
            }
        }
        // Without a list it runs over the arguments.
        if values.is_empty() {
            values.push(Word::anything());
        }
        let set = |value| Assignment { name: variable.clone(), value, in_loop: true };
        let assignments = values.into_iter().map(set).collect();
        self.record_command(SimpleCommand { assignments, in_background, ..SimpleCommand::default() });
    }

    /// Reads the body of a loop: once for each value where all of them are plain texts, so that it is known what the
    /// variable contains.
    fn iterations(&mut self, body: Node<'_>, variable: &str, values: &[Word], in_background: bool) {
        let is_plain = |value: &&str| {
            !value.is_empty()
                && !value.starts_with('-')
                && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte))
        };
        let texts: Option<Vec<&str>> = values.iter().map(|value| value.literal().filter(is_plain)).collect();
        let is_readable = self.loop_values.len() < MAX_LOOPS && is_set_by_loop_only(variable, self.source);
        match texts.filter(|texts| is_readable && (1..=MAX_ITERATIONS).contains(&texts.len())) {
            Some(texts) => {
                for text in texts {
                    self.loop_values.push((variable.to_owned(), text.to_owned()));
                    self.list(body, in_background);
                    self.loop_values.pop();
                }
            }
            None => self.list(body, in_background),
        }
    }

    /// The value of `$name` or `${name}` in a loop whose values are known.
    pub(super) fn loop_value(&self, expansion: &str) -> Option<&str> {
        let name = expansion.trim().strip_prefix('$')?;
        let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
        self.loop_values.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.as_str())
    }

    fn case_statement(&mut self, node: Node<'_>, in_background: bool) {
        for part in children(node) {
            match part.kind() {
                "case" | "in" | "esac" | "comment" | ";" => {}
                "case_item" => self.case_item(part, in_background),
                _ => {
                    self.word(part);
                }
            }
        }
    }

    fn case_item(&mut self, node: Node<'_>, in_background: bool) {
        let parts = children(node);
        let mut in_pattern = true;
        for (index, part) in parts.iter().enumerate() {
            match part.kind() {
                ")" => in_pattern = false,
                "(" | "|" | "extglob_pattern" if in_pattern => {}
                _ if in_pattern => {
                    self.word(*part);
                }
                ";&" | ";;&" => {}
                _ => {
                    let beside = parts.get(index + 1).is_some_and(|next| next.kind() == "&");
                    self.part(*part, in_background || beside);
                }
            }
        }
    }

    fn bare_assignments(&mut self, node: Node<'_>, in_background: bool) {
        let assignments = if node.kind() == "variable_assignment" {
            vec![self.assignment(node)]
        } else {
            children(node).into_iter().map(|child| self.assignment(child)).collect()
        };
        self.record_command(SimpleCommand { assignments, in_background, ..SimpleCommand::default() });
    }

    /// A statement with redirections after it.
    fn redirected(&mut self, node: Node<'_>, in_background: bool) {
        let mut body = None;
        let mut redirects = Vec::new();
        for part in children(node) {
            match part.kind() {
                "file_redirect" | "heredoc_redirect" | "herestring_redirect" => redirects.push(part),
                "comment" => {}
                _ if body.is_none() && is_statement(part) => body = Some(part),
                _ => self.reject("it has a redirection in it that is not understood"),
            }
        }
        match body {
            Some(body) if body.kind() == "command" => {
                let dash = redirects.first().is_some_and(|first| lost_dash(body, *first, self.source));
                self.command(body, redirects, dash, in_background);
            }
            body => {
                let mut invocation = SimpleCommand { in_background, ..SimpleCommand::default() };
                for redirect in redirects {
                    self.redirect(redirect, &mut invocation, false);
                }
                self.record_command(invocation);
                if let Some(body) = body {
                    self.statement(body, in_background);
                }
            }
        }
    }

    /// A substitution: the commands in it are commands like any other.
    pub(super) fn substitution(&mut self, node: Node<'_>) {
        let parts = children(node);
        if parts.len() == 3 && parts[1].kind() == "file_redirect" {
            let mut invocation = SimpleCommand::default();
            self.redirect(parts[1], &mut invocation, false);
            if invocation.redirections.iter().any(|redirection| redirection.kind != RedirectionKind::Read) {
                self.reject("it has a redirection in it that is not understood");
            }
            self.record_command(invocation);
            return;
        }
        self.list(node, false);
    }
}

/// True if nothing in a script sets a variable but one loop, as far as its name shows. Names with capitals may mean
/// something to the shell, and `IFS` changes what becomes of a value.
fn is_set_by_loop_only(variable: &str, script: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_usual =
        variable.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            && variable.starts_with(|first: char| first.is_ascii_lowercase());
    let bytes = script.as_bytes();
    let stands_alone = |at: &usize| {
        let (before, after) =
            (at.checked_sub(1).map(|at| bytes[at]), bytes.get(at + variable.len()).copied());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    };
    let is_value = |at: usize| {
        let after = bytes.get(at + variable.len());
        script[..at].ends_with('$') || (script[..at].ends_with("${") && after == Some(&b'}'))
    };
    let found = script.match_indices(variable).map(|(at, _)| at).filter(stands_alone);
    is_usual && !script.contains("IFS") && found.filter(|at| !is_value(*at)).count() == 1
}
