//! The single declaration of a tool. Permissions, displays, plan mode and both tool vocabularies read it.

use std::borrow::Cow;

/// The kind of work that a tool does. Permission rules depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// Reads files of the workspace.
    Read,
    /// Changes files of the workspace.
    Edit,
    /// Runs a shell command.
    Execute,
    /// Fetches the content of a URL.
    Fetch,
    /// Calls a tool of an MCP server.
    Mcp,
    /// Affects only the session itself: lists, background tasks, sub-agents. The calls of a sub-agent are
    /// checked individually.
    Session,
    /// Asks the user; the question always reaches a user.
    Ask,
    /// Ends plan mode, with approval.
    ExitPlan,
    /// Writes to the user's memory files.
    Memory,
    /// The tool declared nothing, so its effects are unknown. It never runs without approval.
    Undeclared,
}

impl ToolKind {
    /// True if no call of a tool of this kind changes anything.
    pub fn only_reads(self) -> bool {
        match self {
            Self::Read | Self::Fetch => true,
            Self::Edit
            | Self::Execute
            | Self::Mcp
            | Self::Session
            | Self::Ask
            | Self::ExitPlan
            | Self::Memory
            | Self::Undeclared => false,
        }
    }
}

/// What an argument denotes, for permission checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentRole {
    /// A file or directory that the call accesses.
    Path,
    /// The directory in which a command starts.
    WorkingDirectory,
    /// A command line for a shell.
    Command,
    Url,
    Plain,
}

/// The values that an argument accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentValue {
    Text,
    /// A text that is not blank and contains no NUL.
    NonBlankText,
    Flag,
    /// An integer within bounds; `u64::MAX` means no upper bound.
    Number {
        min: u64,
        max: u64,
    },
    Choice(&'static [&'static str]),
    Texts,
    /// The rest of a JSON Schema object for the argument, without the braces and without the description.
    Json {
        /// The keywords before the description.
        before: &'static str,
        /// The keywords after it.
        after: &'static str,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// Its name in our vocabulary.
    pub name: &'static str,
    pub role: ArgumentRole,
    pub value: ArgumentValue,
    /// True if every call must have it.
    pub required: bool,
    /// The description for the model.
    pub description: &'static str,
}

impl Argument {
    /// A plain argument; the input struct of its tool supplies the name and whether it is required.
    pub const fn new(value: ArgumentValue, description: &'static str) -> Self {
        Self { name: "", role: ArgumentRole::Plain, value, required: false, description }
    }

    /// Sets the role of the argument.
    pub const fn role(mut self, role: ArgumentRole) -> Self {
        self.role = role;
        self
    }
}

/// A tool of Claude's vocabulary that corresponds to one of ours. Arguments without an entry have the same
/// name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaudeTool {
    pub name: &'static str,
    /// The description for the model, if it differs from that of our tool.
    pub description: Option<&'static str>,
    /// Arguments with another name: ours, then Claude's.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Further names of arguments that calls may use: ours, then Claude's.
    pub also: &'static [(&'static str, &'static str)],
    /// Arguments of ours that Claude's tool does not have.
    pub absent: &'static [&'static str],
    /// Arguments of ours that the name of Claude's tool implies: name and value.
    pub implied: &'static [(&'static str, &'static str)],
    /// Arguments that only Claude's tool has. They reach our tool under the same name.
    pub added: &'static [Argument],
    /// Values (JSON) that arguments of Claude's tool have when a call leaves them out, by our name.
    pub defaults: &'static [(&'static str, &'static str)],
}

impl ClaudeTool {
    /// A tool whose arguments are the same in both vocabularies.
    pub const fn with_name(name: &'static str) -> Self {
        Self {
            name,
            description: None,
            renamed: &[],
            also: &[],
            absent: &[],
            implied: &[],
            added: &[],
            defaults: &[],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolDeclaration {
    /// Its name in our vocabulary.
    pub name: &'static str,
    /// Further names in settings and SDKs, besides Claude's. Case, `_`, `-` and a final `Tool` are ignored.
    pub aliases: &'static [&'static str],
    pub kind: ToolKind,
    /// The description for the model.
    pub description: &'static str,
    /// In the order of the schema.
    pub arguments: &'static [Argument],
    /// The tools of Claude's vocabulary that correspond to this one.
    pub claude: &'static [ClaudeTool],
}

impl ToolDeclaration {
    /// A tool without further names.
    pub const fn new(
        name: &'static str,
        kind: ToolKind,
        description: &'static str,
        arguments: &'static [Argument],
    ) -> Self {
        Self { name, aliases: &[], kind, description, arguments, claude: &[] }
    }

    /// Sets the further names.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Sets the corresponding tools of Claude's vocabulary.
    pub const fn claude(mut self, tools: &'static [ClaudeTool]) -> Self {
        self.claude = tools;
        self
    }

    /// True if `name` denotes this tool, in any spelling.
    pub fn answers_to(&self, name: &str) -> bool {
        let names = std::iter::once(self.name).chain(self.aliases.iter().copied());
        names.chain(self.claude.iter().map(|tool| tool.name)).any(|known| is_same_name(known, name))
    }

    /// The action that a name of Claude's vocabulary implies, such as `kill` for `KillShell`.
    pub fn action_of(&self, name: &str) -> Option<&'static str> {
        let tool = self.claude.iter().find(|tool| is_same_name(tool.name, name))?;
        tool.implied.first().map(|(_, action)| *action)
    }

    /// The argument with this name.
    pub fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|argument| argument.name == name)
    }

    /// The arguments with a role.
    pub fn with_role(&self, role: ArgumentRole) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(move |argument| argument.role == role)
    }
}

/// `ShellTool` and `Shell` are the same name, as are `read_file`, `ReadFile` and `readFile`. Nothing is
/// allocated, because every turn looks tools up.
fn is_same_name(one: &str, other: &str) -> bool {
    letters(one).next() == letters(other).next() && stem(one).eq(stem(other))
}

/// The letters of a name in lower case, without separators.
fn letters(name: &str) -> impl Iterator<Item = char> + Clone {
    name.trim().chars().filter(|character| !matches!(character, '_' | '-')).flat_map(char::to_lowercase)
}

/// The letters of a name without a final `tool`.
fn stem(name: &str) -> impl Iterator<Item = char> {
    let letters = letters(name);
    let count = letters.clone().count();
    let before = count.saturating_sub("tool".len());
    let ends_with_tool = before > 0 && letters.clone().skip(before).eq("tool".chars());
    letters.take(if ends_with_tool { before } else { count })
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

    pub fn all(&self) -> impl Iterator<Item = &'static ToolDeclaration> {
        self.groups.iter().flat_map(|group| group.iter().copied())
    }

    /// The tool that `name` denotes, in any vocabulary and spelling; none for tools of MCP servers.
    pub fn find(&self, name: &str) -> Option<&'static ToolDeclaration> {
        if name.trim().starts_with("mcp__") {
            return None;
        }
        self.all()
            .find(|declaration| declaration.name == name)
            .or_else(|| self.all().find(|declaration| declaration.answers_to(name)))
    }

    /// The name of a tool in our vocabulary; an unknown name is returned unchanged.
    pub fn canonical_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match self.find(name) {
            Some(declaration) => Cow::Borrowed(declaration.name),
            None => Cow::Borrowed(name.trim()),
        }
    }

    /// True if two names denote the same tool.
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
