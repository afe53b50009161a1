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
}

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
                "do_group" => self.list(part, in_background),
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
