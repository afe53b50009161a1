//! The words of a command after quote removal.

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Known to the letter.
    Literal(String),
    /// Only known when the command runs.
    Dynamic(Dynamic),
}

/// What is known about a word whose value is only known when the command runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dynamic {
    /// The text that it certainly begins with.
    pub prefix: String,
    /// It may become several words, or none.
    pub splits: bool,
    /// It is nothing but a pattern for file names, in which a backslash quotes.
    pub glob: Option<String>,
    /// The text behind what is only known later, for those who look for what a word may name: `/key` of
    /// `"$HOME/key"`. A word with braces is here as it is written.
    pub tail: String,
    /// It comes from a command, from standard input or from more than a plain variable, so its text is not in
    /// the line.
    pub made: bool,
    /// What is only known later are numbers that the shell counts (`$?`), and in quotes what commands of the
    /// line print: nothing of a variable.
    pub without_variables: bool,
}

impl Word {
    /// A word that may be anything, any number of times.
    pub fn anything() -> Self {
        Self::Dynamic(Dynamic { splits: true, made: true, ..Dynamic::default() })
    }

    /// The text, where it is known.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Dynamic(_) => None,
        }
    }

    /// The text that it certainly begins with.
    pub fn known_prefix(&self) -> &str {
        match self {
            Self::Literal(text) => text,
            Self::Dynamic(dynamic) => &dynamic.prefix,
        }
    }

    /// True if it could expand to an option that is not in the line.
    pub fn may_hide_an_option(&self) -> bool {
        match self {
            Self::Literal(_) => false,
            // File names come out of a pattern one by one, each with the pattern's beginning.
            Self::Dynamic(dynamic) if dynamic.glob.is_some() => {
                dynamic.prefix.is_empty() || dynamic.prefix.starts_with('-')
            }
            Self::Dynamic(dynamic) => {
                dynamic.splits || dynamic.prefix.is_empty() || dynamic.prefix.starts_with('-')
            }
        }
    }
}

/// Puts a word together from its parts.
#[derive(Debug, Default)]
pub(super) struct WordBuilder {
    text: String,
    /// The same as a pattern in which only the wildcards match.
    pattern: String,
    prefix: Option<String>,
    splits: bool,
    expands: bool,
    globs: bool,
    pub(super) made: bool,
    /// Something in it may hold what a variable does.
    has_variable: bool,
}

impl WordBuilder {
    pub(super) fn quoted(&mut self, text: &str) {
        for character in text.chars() {
            self.character(character);
        }
    }

    /// Adds unquoted text: its backslashes quote and its wildcards match.
    pub(super) fn unquoted(&mut self, raw: &str) {
        let mut characters = raw.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' => {
                    if let Some(quoted) = characters.next() {
                        self.character(quoted);
                    }
                }
                '*' | '?' | '[' | ']' => {
                    if character != ']' {
                        self.prefix.get_or_insert_with(|| self.text.clone());
                        self.globs = true;
                    }
                    self.text.push(character);
                    self.pattern.push(character);
                }
                _ => self.character(character),
            }
        }
    }

    /// Adds something that is only known later.
    pub(super) fn expansion(&mut self, splits: bool) {
        self.prefix.get_or_insert_with(|| self.text.clone());
        // Two adjacent expansions can form text that neither contains.
        self.made |= self.expands;
        self.expands = true;
        self.splits |= splits;
        self.has_variable = true;
    }

    /// Adds a number that the shell counts, such as `$?`.
    pub(super) fn shell_number(&mut self) {
        let has_variable = self.has_variable;
        self.expansion(true);
        self.has_variable = has_variable;
    }

    /// Adds a quoted expansion. `prints` means that it is what a command prints.
    pub(super) fn quoted_expansion(&mut self, inner: &Self, splits: bool, prints: bool) {
        let has_variable = self.has_variable || (inner.has_variable && !prints);
        self.expansion(splits);
        self.made |= inner.made;
        self.has_variable = has_variable;
    }

    /// Adds something that a command makes, or that is worked out.
    pub(super) fn making(&mut self, splits: bool) {
        self.expansion(splits);
        self.made = true;
    }

    pub(super) fn finish(self) -> Word {
        match self.prefix {
            None => Word::Literal(self.text),
            Some(prefix) => {
                let glob = (self.globs && !self.expands).then_some(self.pattern);
                let tail = self.text[prefix.len()..].to_owned();
                let splits = self.splits || self.globs;
                let without_variables = self.expands && !self.globs && !self.has_variable;
                Word::Dynamic(Dynamic { prefix, splits, glob, tail, made: self.made, without_variables })
            }
        }
    }

    fn character(&mut self, character: char) {
        self.text.push(character);
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '!' | '\\' | ',') {
            self.pattern.push('\\');
        }
        self.pattern.push(character);
    }
}
