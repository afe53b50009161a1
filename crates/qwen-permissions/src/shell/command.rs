//! Simple commands: their words, assignments and redirections, and what they wrap.

use tree_sitter::Node;

use super::layout::children;
use super::statement::Reader;
use super::wrappers::{self, Inner};
use super::{Assignment, Dynamic, Redirection, RedirectionKind, SimpleCommand, Word, WrappedBy, builtins};

impl Reader<'_> {
    /// Reads a simple command with the redirections after it, and a `-` that the grammar drops.
    pub(super) fn command(
        &mut self,
        node: Node<'_>,
        redirects: Vec<Node<'_>>,
        dash: bool,
        in_background: bool,
    ) {
        let mut invocation = SimpleCommand { in_background, ..SimpleCommand::default() };
        for part in children(node) {
            match part.kind() {
                "variable_assignment" => {
                    let assignment = self.assignment(part);
                    if children(part).iter().any(|child| child.kind() == "array") {
                        self.reject("it has an array in front of a command in it");
                    }
                    invocation.assignments.push(assignment);
                }
                "command_name" => {
                    let word = self.command_name(part);
                    invocation.words.push(word);
                }
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                    let named = !invocation.words.is_empty();
                    self.redirect(part, &mut invocation, named);
                }
                "comment" => {}
                "subshell" => {
                    self.reject("it has a subshell in it where bash expects none");
                    self.statement(part, in_background);
                }
                _ => invocation.words.extend(self.words(part)),
            }
        }
        invocation.words.extend(dash.then(|| Word::Literal("-".to_owned())));
        for redirect in redirects {
            self.redirect(redirect, &mut invocation, true);
        }
        self.record_command(invocation);
    }

    /// The name of a command must be known: it must not be a keyword that the grammar missed.
    fn command_name(&mut self, node: Node<'_>) -> Word {
        let Some(part) = node.child(0) else {
            self.reject("it has a command without a name in it");
            return Word::anything();
        };
        let raw = self.text(part).to_owned();
        if looks_like_an_assignment(&raw) {
            self.reject("it has an assignment in it that can be read as a command");
        }
        if builtins::is_keyword(&raw) {
            self.reject(format!("it has the keyword {raw} in it where the grammar sees a command"));
        }
        self.word(part)
    }

    /// `NAME=value`.
    pub(super) fn assignment(&mut self, node: Node<'_>) -> Assignment {
        let mut name = String::new();
        let mut value = Word::Literal(String::new());
        for part in children(node) {
            match part.kind() {
                "variable_name" => self.text(part).clone_into(&mut name),
                "=" | "+=" | "comment" => {}
                "array" => {
                    if !is_ordinary_array(&name) {
                        self.reject("it sets an array that the shell uses itself");
                    }
                    self.elements(part);
                    value = Word::anything();
                }
                "subscript" => {
                    self.reject("it sets an element of an array");
                    self.anything(part, false);
                    value = Word::anything();
                }
                _ => value = self.word(part),
            }
        }
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            self.reject("it has an assignment in it that is not understood");
        }
        Assignment { name, value, in_loop: false }
    }

    /// The elements of an array. One with an index is evaluated.
    fn elements(&mut self, array: Node<'_>) {
        for element in children(array) {
            match element.kind() {
                "(" | ")" | "comment" => {}
                _ if self.text(element).starts_with('[') => {
                    self.reject("it sets an element of an array");
                    self.anything(element, false);
                }
                _ => {
                    self.word(element);
                }
            }
        }
    }

    /// A redirection. The grammar counts words after it to it, which bash gives to the command.
    pub(super) fn redirect(
        &mut self,
        node: Node<'_>,
        invocation: &mut SimpleCommand,
        words_may_follow: bool,
    ) {
        match node.kind() {
            "file_redirect" => self.file_redirect(node, invocation, words_may_follow),
            "herestring_redirect" => {
                for part in children(node) {
                    if !matches!(part.kind(), "<<<" | "file_descriptor") {
                        let target = self.word(part);
                        invocation.redirections.push(Redirection { kind: RedirectionKind::Here, target });
                    }
                }
            }
            _ => self.heredoc(node, invocation, words_may_follow),
        }
    }

    fn file_redirect(&mut self, node: Node<'_>, invocation: &mut SimpleCommand, words_may_follow: bool) {
        let mut operator = String::new();
        let mut words = Vec::new();
        for part in children(node) {
            match part.kind() {
                "file_descriptor" | "comment" => {}
                "<" | ">" | ">>" | "&>" | "&>>" | "<&" | ">&" | ">|" | "<&-" | ">&-" => {
                    part.kind().clone_into(&mut operator);
                }
                _ => words.push(self.word(part)),
            }
        }
        let mut words = words.into_iter();
        if !matches!(operator.as_str(), "<&-" | ">&-") {
            let Some(target) = words.next() else {
                self.reject("it has a redirection in it without a file");
                return;
            };
            let descriptor = target.literal().is_some_and(is_descriptor);
            let kind = match operator.as_str() {
                "<" => RedirectionKind::Read,
                ">" | ">|" | "&>" => RedirectionKind::Write,
                ">>" | "&>>" => RedirectionKind::Append,
                "<&" | ">&" if descriptor => RedirectionKind::Duplicate,
                ">&" => RedirectionKind::Write,
                _ => {
                    self.reject("it has a redirection in it that is not understood");
                    RedirectionKind::Write
                }
            };
            invocation.redirections.push(Redirection { kind, target });
        }
        let before = invocation.words.len();
        invocation.words.extend(words);
        if invocation.words.len() > before && !words_may_follow {
            self.reject("it has a redirection in front of a command in it");
        }
    }

    fn heredoc(&mut self, node: Node<'_>, invocation: &mut SimpleCommand, words_may_follow: bool) {
        let in_background = invocation.in_background;
        let mut target = Word::Literal(String::new());
        let mut is_text = true;
        for part in children(node) {
            match part.kind() {
                "file_descriptor" | "<<" | "<<-" | "heredoc_start" | "heredoc_end" | "&&" | "||" => {}
                "file_redirect" | "herestring_redirect" => self.redirect(part, invocation, words_may_follow),
                "heredoc_body" => {
                    for child in children(part) {
                        if child.kind() != "heredoc_content" {
                            self.word(child);
                            is_text = false;
                        }
                    }
                    let prefix = self.text(part).to_owned();
                    target = if is_text {
                        Word::Literal(prefix)
                    } else {
                        // Its start is unknown, but its literal parts matter.
                        Word::Dynamic(Dynamic {
                            tail: prefix,
                            splits: true,
                            made: true,
                            ..Dynamic::default()
                        })
                    };
                }
                "pipeline"
                | "list"
                | "command"
                | "redirected_statement"
                | "subshell"
                | "compound_statement" => {
                    self.statement(part, in_background);
                }
                "word" | "string" | "raw_string" | "concatenation" | "number" if words_may_follow => {
                    let word = self.word(part);
                    invocation.words.push(word);
                }
                _ => {
                    self.reject("it has a here-document in it that is not understood");
                    self.anything(part, in_background);
                }
            }
        }
        invocation.redirections.push(Redirection { kind: RedirectionKind::Here, target });
    }

    /// `[ … ]` and `[[ … ]]`.
    pub(super) fn test_command(&mut self, node: Node<'_>, in_background: bool) {
        let double = node.child(0).is_some_and(|first| first.kind() == "[[");
        let mut words = Vec::new();
        self.test_words(node, double, &mut words);
        // These operators read variables by name, and a name may contain a subscript that is evaluated.
        let evaluates = words.iter().any(|word| {
            word.literal().is_some_and(|word| {
                matches!(word, "-v" | "-R")
                    || (double && matches!(word, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"))
            })
        });
        if evaluates {
            self.reject("it has a test in it that evaluates its operands");
        }
        self.record_command(SimpleCommand { words, in_background, ..SimpleCommand::default() });
    }

    fn test_words(&mut self, node: Node<'_>, double: bool, words: &mut Vec<Word>) {
        for part in children(node) {
            match part.kind() {
                "[" | "[[" | "]" | "]]" | "=" | "==" | "!=" | "!" | "test_operator" => {
                    words.push(Word::Literal(self.text(part).to_owned()));
                }
                // To a single bracket these are redirections, lists and subshells.
                "&&" | "||" | "<" | ">" | "(" | ")" | "=~" | "regex" | "extglob_pattern" if double => {
                    words.push(Word::Literal(self.text(part).to_owned()));
                }
                "extglob_pattern" => {
                    let text = self.text(part).to_owned();
                    words.push(Word::Dynamic(Dynamic {
                        splits: true,
                        glob: Some(text),
                        ..Dynamic::default()
                    }));
                }
                "binary_expression" | "unary_expression" => self.test_words(part, double, words),
                "parenthesized_expression" if double => self.test_words(part, double, words),
                "word"
                | "string"
                | "raw_string"
                | "number"
                | "concatenation"
                | "simple_expansion"
                | "expansion"
                | "command_substitution" => {
                    let word = self.word(part);
                    words.push(word);
                }
                _ => {
                    self.reject("it has a test in it that is not understood");
                    self.anything(part, false);
                }
            }
        }
    }

    /// `export NAME=value` and its relatives, which may evaluate what is no plain assignment.
    pub(super) fn declaration(&mut self, node: Node<'_>, in_background: bool) {
        let mut invocation = SimpleCommand { in_background, ..SimpleCommand::default() };
        let is_export = node.child(0).is_some_and(|first| first.kind() == "export");
        for part in children(node) {
            match part.kind() {
                "export" | "declare" | "typeset" | "readonly" | "local" => {
                    invocation.words.push(Word::Literal(part.kind().to_owned()));
                }
                "variable_assignment" => {
                    let assignment = self.assignment(part);
                    invocation.assignments.push(assignment);
                }
                "variable_name" => {
                    let name = self.text(part).to_owned();
                    invocation.words.push(Word::Literal(name));
                }
                "comment" => {}
                _ => {
                    let word = self.word(part);
                    let is_flag = |word: &str| matches!(word, "-r" | "-x" | "-g" | "-a");
                    if word.literal().is_none_or(|text| !is_export && !is_flag(text)) {
                        self.reject("a declaration evaluates what it is given");
                    }
                    invocation.words.push(word);
                }
            }
        }
        self.record_command(invocation);
    }

    /// Records a simple command, and analyses the command it wraps.
    pub(super) fn record_command(&mut self, invocation: SimpleCommand) {
        let index = self.analysis.invocations.len();
        let in_background = invocation.in_background;
        let words = invocation.words.clone();
        if let Some(assignment) = invocation.assignments.iter().find(|set| builtins::is_shell_code(&set.name))
        {
            let name = assignment.name.clone();
            self.analysis.invocations.push(invocation);
            self.reject(format!("a shell takes commands from the variable {name}"));
        } else {
            self.analysis.invocations.push(invocation);
        }
        let Some(first) = words.first() else { return };
        let Some(program) = first.literal() else {
            self.reject("the name of a command in it is only known when it runs");
            return;
        };
        if program.is_empty() || !program.bytes().all(|byte| byte.is_ascii_graphic()) {
            self.reject("the name of a command in it has unusual characters in it");
        }
        if let Some(reason) = builtins::refusal(&words) {
            self.reject(reason);
        }
        match wrappers::find_inner(&words) {
            Ok(None) => {}
            Err(reason) => self.reject(reason),
            Ok(Some(wrapper)) => {
                if let Some(invocation) = self.analysis.invocations.get_mut(index) {
                    // A wrapper given by path may be any program.
                    invocation.transparent = wrapper.transparent && !program.contains('/');
                }
                if let Some(reason) = wrapper.unreadable {
                    self.reject(reason);
                }
                for inner in wrapper.inners {
                    if wrappers::starts_without_program(&inner) {
                        self.reject("it has a keyword or an assignment in it where a program is expected");
                    }
                    self.inner(inner, index, in_background);
                }
            }
        }
    }

    fn inner(&mut self, inner: Inner, wrapper: usize, in_background: bool) {
        let Some(depth) = self.depth.checked_sub(1) else {
            self.reject("its commands are nested too deeply");
            return;
        };
        match inner {
            Inner::Script { text, word } => {
                let wrapped_by = Some(WrappedBy { invocation: wrapper, word });
                super::read(&text, depth, in_background, wrapped_by, self.analysis);
            }
            Inner::Command { words, assignments, word } => {
                let wrapped_by = Some(WrappedBy { invocation: wrapper, word });
                let invocation = SimpleCommand {
                    words,
                    assignments,
                    in_background,
                    wrapped_by,
                    ..SimpleCommand::default()
                };
                Reader {
                    source: self.source,
                    depth,
                    analysis: &mut *self.analysis,
                    loop_values: self.loop_values.clone(),
                }
                .record_command(invocation);
            }
        }
    }
}

/// True if a word is a descriptor, or closes one.
fn is_descriptor(word: &str) -> bool {
    let digits = word.strip_suffix('-').unwrap_or(word);
    !word.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// True if a variable is neither one of the shell's own nor one that programs are found by.
fn is_ordinary_array(name: &str) -> bool {
    const SHELL: [&str; 14] = [
        "BASH",
        "COMP",
        "DIRSTACK",
        "ENV",
        "EUID",
        "FUNCNAME",
        "GIT",
        "GROUPS",
        "HOME",
        "IFS",
        "LD_",
        "PATH",
        "PIPESTATUS",
        "PS",
    ];
    !name.is_empty() && !SHELL.iter().any(|start| name.starts_with(start))
}

/// True if bash takes a word at the beginning of a command for an assignment.
fn looks_like_an_assignment(raw: &str) -> bool {
    let name = raw
        .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .unwrap_or(raw.len());
    let rest = &raw[name..];
    name > 0 && (rest.starts_with('=') || rest.starts_with("+=") || rest.starts_with('['))
}
