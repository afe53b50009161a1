//! Files that a command line names: the scripts of hooks and servers.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// The directories that relative names and variables in a command line refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameBase<'a> {
    /// The directory that the command runs in, which is also the project's.
    pub cwd: &'a Path,
    pub home: Option<&'a Path>,
}

/// Programs that run the file given as an argument.
const INTERPRETERS: &[&str] = &[
    "bash", "sh", "dash", "zsh", "ksh", "fish", "source", ".", "exec", "env", "nice", "nohup", "time",
    "timeout", "sudo", "python", "python2", "python3", "pypy3", "uv", "uvx", "node", "deno", "bun", "tsx",
    "ts-node", "npx", "ruby", "perl", "php", "lua", "Rscript", "java", "awk", "sed", "make", "just",
];

/// Programs that run what a file of a fixed name contains.
const IMPLICIT: &[(&str, &[&str])] = &[
    ("npm", &["package.json"]),
    ("npx", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
    ("bun", &["package.json"]),
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("just", &["justfile", "Justfile"]),
    ("rake", &["Rakefile"]),
];

/// Files that a program runs if it is given their directory.
const ENTRY_FILES: &[&str] = &["index.js", "package.json", "__main__.py", "main.py"];

/// Extensions of files that are run although they are not executable.
const EXTENSIONS: &[&str] =
    &["sh", "bash", "zsh", "py", "js", "mjs", "cjs", "ts", "mts", "rb", "pl", "php", "lua", "jar", "mk"];

/// The largest script that is searched for further scripts, in bytes.
const MAX_SCRIPT: u64 = 256 * 1024;

/// The most files that are followed from one command line.
const MAX_FILES: usize = 64;

/// Returns the existing files that `command` names, with the scripts that those name in turn.
pub(crate) fn find_named_files(command: &str, base: NameBase<'_>) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open: Vec<PathBuf> = Vec::new();
    for token in split_command(command) {
        open.extend(candidates(&token.text, base.cwd, base).into_iter().flat_map(existing_files));
        let implicit = IMPLICIT.iter().filter(|(program, _)| is_program(&token.text, program));
        open.extend(
            implicit.flat_map(|(_, files)| *files).map(|file| base.cwd.join(file)).filter(|f| f.is_file()),
        );
    }
    while let Some(file) = open.pop() {
        if found.len() >= MAX_FILES || !found.insert(file.clone()) {
            continue;
        }
        for token in read_script(&file).iter().flat_map(|text| split_command(text)) {
            let near = file.parent().unwrap_or(base.cwd);
            let names = candidates(&token.text, near, base).into_iter().chain(candidates(
                &token.text,
                base.cwd,
                base,
            ));
            open.extend(names.filter(|path| path.is_file() && is_script(path)));
        }
    }
    found
}

/// Returns the files that `command` runs, whether they exist or not. Data files that it names are left out.
pub(crate) fn find_run_files(command: &str, base: NameBase<'_>) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut has_interpreter = false;
    for token in split_command(command) {
        if token.starts_command {
            has_interpreter = INTERPRETERS.iter().any(|program| is_program(&token.text, program));
        }
        let is_path = token.text.contains('/');
        for path in candidates(&token.text, base.cwd, base) {
            let is_run = match path.metadata() {
                Ok(file) if file.is_file() => {
                    has_interpreter || (token.starts_command && is_path) || is_executable(&file)
                }
                Ok(_) => false,
                Err(_) => is_path && (token.starts_command || (has_interpreter && has_script_name(&path))),
            };
            if is_run {
                found.insert(path);
            }
        }
    }
    found
}

/// One argument of a command line.
struct Token {
    text: String,
    /// True if it is the name of a program.
    starts_command: bool,
}

/// Splits a command line at blanks and operators. Quotes are removed; what they enclose stays together and is
/// split in addition, since it may be a command line itself.
fn split_command(command: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut text = String::new();
    let mut quote = None;
    let mut starts_command = true;
    let push = |text: &mut String, starts_command: &mut bool, tokens: &mut Vec<Token>| {
        if text.is_empty() {
            return;
        }
        let is_assignment =
            *starts_command && text.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
        let inner: Vec<&str> =
            text.split([' ', '\t', '\n', ';', '&', '|', '(', ')', '`', '"', '\'']).collect();
        if inner.len() > 1 {
            let parts = inner.into_iter().filter(|part| !part.is_empty());
            tokens.extend(parts.map(|part| Token { text: part.to_owned(), starts_command: true }));
        }
        tokens.push(Token { text: std::mem::take(text), starts_command: *starts_command });
        *starts_command = is_assignment;
    };
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some('\''), _) => text.push(c),
            (_, '\\') => text.extend(chars.next().filter(|next| *next != '\n')),
            (Some(_), _) => text.push(c),
            (None, '"' | '\'') => quote = Some(c),
            (None, ' ' | '\t' | '<' | '>') => push(&mut text, &mut starts_command, &mut tokens),
            (None, ';' | '&' | '|' | '(' | ')' | '`' | '\n') => {
                push(&mut text, &mut starts_command, &mut tokens);
                starts_command = true;
                // The path that follows `$(…)` is relative to a directory that only the shell knows.
                if c == ')' && chars.as_str().starts_with('/') {
                    chars.next();
                }
            }
            (None, _) => text.push(c),
        }
    }
    push(&mut text, &mut starts_command, &mut tokens);
    tokens
}

/// The paths that a token may denote: the token itself and what follows an equals sign in it.
fn candidates(token: &str, cwd: &Path, base: NameBase<'_>) -> Vec<PathBuf> {
    let value = token.split_once('=').map(|(_, value)| value);
    let names = [Some(token), value].into_iter().flatten();
    names.filter_map(|name| resolve(name, cwd, base)).collect()
}

/// Resolves a name as a shell would. None if it is not a path.
fn resolve(name: &str, cwd: &Path, base: NameBase<'_>) -> Option<PathBuf> {
    if name.is_empty()
        || name.starts_with('-')
        || name.contains("://")
        || name.contains('\0')
        || name.len() > 4096
    {
        return None;
    }
    let project =
        ["${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR", "${QWEN_PROJECT_DIR}", "$QWEN_PROJECT_DIR"];
    let here = ["${PWD}", "$PWD", "$(pwd)"];
    let home = ["~/", "$HOME/", "${HOME}/"];
    let rest = |prefixes: &[&str]| prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
    let path = if let Some(rest) = rest(&project) {
        base.cwd.join(rest.trim_start_matches('/'))
    } else if let Some(rest) = rest(&here) {
        cwd.join(rest.trim_start_matches('/'))
    } else if let Some(rest) = rest(&home) {
        base.home?.join(rest)
    } else {
        // A directory that only the shell knows, such as `$(dirname "$0")/lib.sh`.
        let known = name.rsplit_once([')', '}']).map_or(name, |(_, rest)| rest.trim_start_matches('/'));
        let known =
            known.strip_prefix('$').and_then(|rest| rest.split_once('/')).map_or(known, |(_, rest)| rest);
        cwd.join(known)
    };
    Some(normalise(&path))
}

/// Removes `.` and `..` without following links.
fn normalise(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                whole.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => whole.push(part),
        }
    }
    whole
}

/// The file itself, or the files that are run if it is a directory.
fn existing_files(path: PathBuf) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path];
    }
    let inner = ENTRY_FILES.iter().map(|file| path.join(file));
    if path.is_dir() { inner.filter(|file| file.is_file()).collect() } else { Vec::new() }
}

fn is_program(token: &str, program: &str) -> bool {
    token.rsplit('/').next() == Some(program)
}

fn is_script(path: &Path) -> bool {
    has_script_name(path) || path.metadata().is_ok_and(|file| is_executable(&file))
}

fn has_script_name(path: &Path) -> bool {
    path.extension().and_then(|name| name.to_str()).is_some_and(|name| EXTENSIONS.contains(&name))
}

fn is_executable(file: &std::fs::Metadata) -> bool {
    file.permissions().mode() & 0o111 != 0
}

fn read_script(path: &Path) -> Option<String> {
    let file = path.metadata().ok()?;
    let is_small = file.is_file() && file.len() <= MAX_SCRIPT;
    is_small.then(|| crate::settings::file::read_file(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn scene() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        fs::create_dir_all(root.join("tools/my dir")).unwrap();
        for (file, text) in [
            ("tools/hook.sh", ". \"$(dirname \"$0\")/lib.sh\"\n"),
            ("tools/lib.sh", "node ./tools/deep.js\n"),
            ("tools/deep.js", ""),
            ("tools/my dir/x.py", ""),
            ("data.json", ""),
            ("package.json", "{}"),
            ("run", ""),
        ] {
            fs::write(root.join(file), text).unwrap();
        }
        fs::set_permissions(root.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        place
    }

    fn names(found: &BTreeSet<PathBuf>, root: &Path) -> Vec<String> {
        found.iter().map(|file| file.strip_prefix(root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn scripts_are_found_however_the_command_line_names_them() {
        let place = scene();
        let base = NameBase { cwd: place.path(), home: None };
        for (command, expected) in [
            ("./run", vec!["run"]),
            ("bash tools/lib.sh", vec!["tools/deep.js", "tools/lib.sh"]),
            ("sh -c './run --fast; true'", vec!["run"]),
            ("\"$CLAUDE_PROJECT_DIR\"/tools/deep.js", vec!["tools/deep.js"]),
            ("python3 'tools/my dir/x.py'", vec!["tools/my dir/x.py"]),
            ("X=1 tools/../run", vec!["run"]),
            ("tool --require=./tools/deep.js", vec!["tools/deep.js"]),
            ("npm test", vec!["package.json"]),
            ("tools/hook.sh", vec!["tools/deep.js", "tools/hook.sh", "tools/lib.sh"]),
            ("echo nothing", vec![]),
        ] {
            assert_eq!(names(&find_named_files(command, base), place.path()), expected, "{command}");
        }
    }

    #[test]
    fn data_that_a_command_reads_is_not_a_script() {
        let place = scene();
        let base = NameBase { cwd: place.path(), home: None };
        for (command, expected) in [
            ("./run data.json", vec!["run"]),
            ("jq . data.json", vec![]),
            ("bash tools/hook.sh", vec!["tools/hook.sh"]),
            ("true && ./missing/script", vec!["missing/script"]),
            ("python3 missing/x.py", vec!["missing/x.py"]),
            ("npm test", vec![]),
        ] {
            assert_eq!(names(&find_run_files(command, base), place.path()), expected, "{command}");
        }
    }
}
