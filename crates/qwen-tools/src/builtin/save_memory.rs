//! `save_memory`: stores a fact for later sessions.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use qwen_events::{Argument, ArgumentValue, Confirmation, FileDiff, ToolCall, ToolDeclaration, ToolKind};
use qwen_permissions::is_protected;
use rustix::fs::{FlockOperation, flock};

use crate::declared::{DeclaredTool, tool_input};
use crate::memory::with_fact;
use crate::output::content::{self, Text, with_crlf};
use crate::output::diff::file_diff;
use crate::refusal::Refusal;
use crate::workspace::{Target, Workspace};
use crate::{CallContext, Outcome, ToolFuture};
use qwen_events::is_hidden;

/// The longest fact, in characters.
const LONGEST: usize = 2_000;
/// How often, and at which interval, to retry while another qwen process holds the lock.
const ATTEMPTS: u32 = 100;
const AGAIN_AFTER: Duration = Duration::from_millis(20);

const DESCRIPTION: &str = "Remembers a fact for later sessions. Use it when the user asks you to remember something, or \
states a lasting preference. Do not use it for what matters only now, and never for passwords or keys.";

pub(super) struct SaveMemory;

tool_input! {
    struct Input {
        fact: String = Argument::new(ArgumentValue::NonBlankText, "The fact, as one sentence that makes sense without context."),
        scope: Option<String> = Argument::new(ArgumentValue::Choice(&["user", "project"]), "Where it applies: everywhere for this user (default), or in this project."),
    }
}

impl DeclaredTool for SaveMemory {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("save_memory", ToolKind::Memory, DESCRIPTION, Input::ARGUMENTS)
            .aliases(&["memory"]);

    fn confirmation(call: &ToolCall, cx: &CallContext) -> Option<Confirmation> {
        let new = NewFact::read(call, cx).ok()?;
        if !new.directory.is_dir() {
            let after = with_fact("", &new.fact)?;
            return Some(Confirmation::Edit(file_diff(&new.path, &new.path, None, &after)));
        }
        let memory = Memory::open(&new.directory, &new.path).ok()?;
        Some(Confirmation::Edit(memory.diff(&memory.with(&new.fact)?)))
    }

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { run(call, cx).await.unwrap_or_else(Outcome::from) })
    }
}

struct NewFact {
    fact: String,
    /// The directory that the file must be in, directly or below.
    directory: PathBuf,
    /// The file. If its name is a symbolic link, this is the target, and the link stays in place.
    path: PathBuf,
}

impl NewFact {
    fn read(call: &ToolCall, cx: &CallContext) -> Result<Self, Refusal> {
        let (input, arguments) = Input::parse(call)?;
        let fact = input.fact.split_whitespace().collect::<Vec<_>>().join(" ");
        let fact = fact.trim_start_matches(['-', '*', '#', ' ']).to_owned();
        if fact.is_empty() {
            return Err(arguments.refuse("fact", "says nothing").into());
        }
        if fact.chars().count() > LONGEST {
            return Err(arguments.refuse("fact", format_args!("is longer than {LONGEST} characters")).into());
        }
        // The fact becomes part of every later prompt without further review.
        if fact.chars().any(is_hidden) {
            return Err(arguments.refuse("fact", "holds characters that cannot be seen").into());
        }
        if cx.session.redactor.redact(&fact) != fact {
            return Err(arguments.refuse("fact", "holds a secret, which is not written to a file").into());
        }
        let files = &cx.session.memory;
        let (name, path) = match input.scope.as_deref() {
            Some("project") => ("project", &files.project),
            Some(_) | None => ("user", &files.user),
        };
        let Some(path) = path else {
            let problem = format!("There is no memory file for the scope `{name}` here.");
            return Err(Refusal::new("no_memory", problem));
        };
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if name == "user" {
            let directory = real.parent().unwrap_or(Path::new("/")).to_owned();
            return Ok(Self { fact, directory, path: real });
        }
        let directory = path.parent().unwrap_or(Path::new("/"));
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        if real != *path && !is_memory_file(&directory, &real) {
            let problem =
                format!("{} is a link that leads to no memory file of the project.", path.display());
            return Err(Refusal::new("not_memory", problem));
        }
        Ok(Self { fact, directory, path: real })
    }
}

/// True if the link of a project's memory file may lead to this file: a Markdown file of the project that does
/// not determine what runs later.
fn is_memory_file(directory: &Path, path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
        && path.strip_prefix(directory).is_ok_and(|below| !is_protected(below))
}

async fn run(call: &ToolCall, cx: &CallContext) -> Result<Outcome, Refusal> {
    let NewFact { fact, directory, path } = NewFact::read(call, cx)?;
    let _alone = lock(&directory).await?;
    let memory = Memory::open(&directory, &path)?;
    let Some(after) = memory.with(&fact) else {
        return Ok(Outcome::success(format!("{} says so already.", path.display())));
    };
    let diff = memory.diff(&after);
    memory.write(&after, cx)?;
    Ok(Outcome {
        display: Some(qwen_events::Display::FileDiff(diff)),
        ..Outcome::success(format!("Remembered in {}: {fact}", path.display()))
    })
}

/// Locks the directory against other qwen processes until the handle is dropped.
async fn lock(directory: &Path) -> Result<File, Refusal> {
    let failed = |error: std::io::Error| {
        Refusal::new("io_error", format!("{} cannot be used for the memory: {error}.", directory.display()))
    };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    let handle = File::open(directory).map_err(failed)?;
    for _ in 0..ATTEMPTS {
        match flock(&handle, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(handle),
            Err(rustix::io::Errno::WOULDBLOCK) => tokio::time::sleep(AGAIN_AFTER).await,
            Err(error) => return Err(failed(error.into())),
        }
    }
    Err(Refusal::new(
        "memory_busy",
        format!("Another process is writing in {}; try again.", directory.display()),
    ))
}

/// A memory file that is about to change.
struct Memory {
    target: Target,
    before: Option<Text>,
}

impl Memory {
    fn open(directory: &Path, path: &Path) -> Result<Self, Refusal> {
        let mut target = Workspace::new(directory, &[])?.target(&path.to_string_lossy())?;
        let before = match &mut target.existing {
            Some(existing) => Some(Text::decode(content::read(existing, path)?)),
            None => None,
        };
        if before.as_ref().is_some_and(|before| before.lossy) {
            let problem = format!("{} is not UTF-8 and is left as it is.", path.display());
            return Err(Refusal::new("not_text", problem));
        }
        Ok(Self { target, before })
    }

    fn with(&self, fact: &str) -> Option<String> {
        let Some(before) = &self.before else { return with_fact("", fact) };
        let after = with_fact(&before.body, fact)?;
        Some(if before.is_crlf() { with_crlf(&after) } else { after })
    }

    fn diff(&self, after: &str) -> FileDiff {
        let before = self.before.as_ref().map(|before| before.body.as_str());
        file_diff(&self.target.path, &self.target.path, before, after)
    }

    fn write(self, after: &str, cx: &CallContext) -> Result<(), Refusal> {
        let bytes = match &self.before {
            Some(before) => before.encode(after),
            None => after.as_bytes().to_vec(),
        };
        let path = self.target.path.clone();
        let metadata = self.target.write(&bytes)?;
        cx.session.ledger.note(&path, &metadata, &bytes);
        Ok(())
    }
}
