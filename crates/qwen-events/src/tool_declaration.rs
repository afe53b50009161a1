//! What a tool declares about itself, once: permissions, displays, plan mode and both tool vocabularies read it.

use std::borrow::Cow;

/// What kind of work a tool does. Permissions judge a call by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// Looks at files.
    Read,
    /// Changes files.
    Edit,
    /// Runs a command.
    Execute,
    /// Visits an address.
    Fetch,
    /// Calls a tool of an MCP server.
    Mcp,
    /// Works on nothing but the session itself: lists, background tasks, sub-agents, whose own calls are judged by
    /// themselves.
    Session,
    /// Asks the user; always goes to a person.
    Ask,
    /// Ends plan mode.
    ExitPlan,
    /// Writes to the user's memory files.
    Memory,
    /// Nothing is declared, so nothing is known. It never runs without approval.
    Undeclared,
}

/// What an argument names, for permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentRole {
    /// A file or directory that the call works on.
    Path,
    /// The directory that a command starts in.
    WorkingDirectory,
    /// A command line.
    Command,
    /// An address.
    Url,
    /// Anything else.
    Plain,
}

/// The values that an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentValue {
    /// Any text.
    Text,
    /// A text that is not blank and holds no NUL.
    NonBlankText,
    /// True or false.
    Flag,
    /// A whole number within bounds; `u64::MAX` means no upper bound.
    Number {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// The rest of a JSON Schema object for it, without the braces and without the description.
    Json {
        /// The keywords before the description.
        before: &'static str,
        /// The keywords after it.
        after: &'static str,
    },
}

/// An argument of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// Its name in our vocabulary.
    pub name: &'static str,
    /// What it names.
    pub role: ArgumentRole,
    /// The values it takes.
    pub value: ArgumentValue,
    /// Whether a call must have it.
    pub required: bool,
    /// What the model is told about it.
    pub description: &'static str,
}

impl Argument {
    /// A plain argument; the input struct of its tool gives the name and says whether it is required.
    pub const fn new(value: ArgumentValue, description: &'static str) -> Self {
        Self { name: "", role: ArgumentRole::Plain, value, required: false, description }
    }

    /// The same with a role.
    pub const fn role(mut self, role: ArgumentRole) -> Self {
        self.role = role;
        self
    }
}

/// A tool of Claude's vocabulary that stands for one of ours. Arguments without an entry have the same name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaudeTool {
    /// Its name.
    pub name: &'static str,
    /// Arguments with another name: ours, then Claude's.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Arguments of ours that it does not have.
    pub absent: &'static [&'static str],
    /// Arguments of ours that its name implies: name and value.
    pub implied: &'static [(&'static str, &'static str)],
    /// Arguments (by our name) that count lines from 1 there and from 0 here.
    pub from_one: &'static [&'static str],
}

impl ClaudeTool {
    /// A tool whose arguments are the same in both vocabularies.
    pub const fn named(name: &'static str) -> Self {
        Self { name, renamed: &[], absent: &[], implied: &[], from_one: &[] }
    }
}

/// What a tool declares about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolDeclaration {
    /// Its name in our vocabulary.
    pub name: &'static str,
    /// Further names that settings and SDKs use for it, besides Claude's. Case, `_`, `-` and a final `Tool` do not count.
    pub aliases: &'static [&'static str],
    /// What kind of work it does.
    pub kind: ToolKind,
    /// What the model is told about it.
    pub description: &'static str,
    /// Its arguments, in the order of its schema.
    pub arguments: &'static [Argument],
    /// The tools of Claude's vocabulary that stand for it.
    pub claude: &'static [ClaudeTool],
}

impl ToolDeclaration {
    /// Whether `name` means this tool, in any spelling.
    pub fn answers_to(&self, name: &str) -> bool {
        let wanted = folded(name);
        let names = std::iter::once(self.name).chain(self.aliases.iter().copied());
        names.chain(self.claude.iter().map(|tool| tool.name)).any(|known| folded(known) == wanted)
    }

    /// The argument of this name.
    pub fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|argument| argument.name == name)
    }

    /// The arguments of a role.
    pub fn with_role(&self, role: ArgumentRole) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(move |argument| argument.role == role)
    }
}

/// `ShellTool` and `Shell` are one, as are `read_file`, `ReadFile` and `readFile`.
fn folded(name: &str) -> String {
    let letters = name.trim().chars().filter(|character| !matches!(character, '_' | '-'));
    let mut folded: String = letters.flat_map(char::to_lowercase).collect();
    if folded.len() > "tool".len() && folded.ends_with("tool") {
        folded.truncate(folded.len() - "tool".len());
    }
    folded
}

/// The declared tools of this program.
#[derive(Debug, Clone, Copy)]
pub struct ToolCatalogue {
    groups: &'static [&'static [&'static ToolDeclaration]],
}

impl ToolCatalogue {
    /// The tools of these groups.
    pub const fn new(groups: &'static [&'static [&'static ToolDeclaration]]) -> Self {
        Self { groups }
    }

    /// All declarations.
    pub fn all(&self) -> impl Iterator<Item = &'static ToolDeclaration> {
        self.groups.iter().flat_map(|group| group.iter().copied())
    }

    /// The tool that `name` means, in any vocabulary and spelling. A tool of an MCP server is never one of them.
    pub fn find(&self, name: &str) -> Option<&'static ToolDeclaration> {
        if name.trim().starts_with("mcp__") {
            return None;
        }
        self.all()
            .find(|declaration| declaration.name == name)
            .or_else(|| self.all().find(|declaration| declaration.answers_to(name)))
    }

    /// The name of a tool in our vocabulary. A name that is not known stands for itself.
    pub fn canonical_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match self.find(name) {
            Some(declaration) => Cow::Borrowed(declaration.name),
            None => Cow::Borrowed(name.trim()),
        }
    }

    /// Whether two names mean the same tool.
    pub fn is_same(&self, one: &str, other: &str) -> bool {
        one == other || self.canonical_name(one) == self.canonical_name(other)
    }

    /// The first tool of a kind.
    pub fn first(&self, kind: ToolKind) -> Option<&'static ToolDeclaration> {
        self.of_kind(kind).next()
    }

    /// The tools of a kind.
    pub fn of_kind(&self, kind: ToolKind) -> impl Iterator<Item = &'static ToolDeclaration> {
        self.all().filter(move |declaration| declaration.kind == kind)
    }
}
