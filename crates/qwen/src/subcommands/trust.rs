//! `qwen trust`: manages the folders whose settings, hooks and MCP servers are used.

use qwen_events::{ErrorInfo, ErrorKind};

use crate::cli::TrustArgs;
use crate::settings::{Invocation, TreeContent, TrustChange, TrustList, UserDirectories, collect_tree};

/// Runs the command and returns the text to print.
pub fn run(args: &TrustArgs, invocation: &Invocation) -> Result<String, ErrorInfo> {
    let input = |code, message: String| ErrorInfo::new(ErrorKind::Input, code, message);
    let list = TrustList::locate(invocation).ok_or_else(|| {
        input("no_home", "trusted folders cannot be stored: set HOME or QWEN_HOME".to_owned())
    })?;
    if args.list {
        let mut folders: Vec<String> =
            list.folders()?.iter().map(|folder| folder.display().to_string()).collect();
        folders.push(String::new());
        return Ok(folders.join("\n"));
    }
    let path = args.path.as_ref().map_or_else(|| invocation.cwd.clone(), |path| invocation.cwd.join(path));
    let folder = match path.canonicalize() {
        Ok(folder) if folder.is_dir() => folder,
        // A folder that no longer exists can still be removed from the list.
        Err(_) if args.remove => path,
        Ok(_) => return Err(input("no_folder", format!("{} is not a folder", path.display()))),
        Err(error) => {
            return Err(input("no_folder", format!("{} cannot be trusted: {error}", path.display())));
        }
    };
    if !args.remove {
        let content = collect_tree(&folder, &UserDirectories::resolve(invocation));
        let listed = list_content(&content);
        return Ok(match list.add(&folder, &content)? {
            TrustChange::Added => {
                format!("{} is trusted, with all folders in it\n{listed}", folder.display())
            }
            TrustChange::Same => {
                format!("{} is already trusted, with all folders in it\n{listed}", folder.display())
            }
            TrustChange::Updated(changes) => format!(
                "{} is trusted with its changes, with all folders in it\n{}",
                folder.display(),
                list_lines("Changed:", changes.into_iter())
            ),
        });
    }
    let known = list.remove(&folder)?;
    let above = list.folders()?.into_iter().find(|trusted| folder.starts_with(trusted));
    Ok(match (known, above) {
        (_, Some(above)) => {
            format!("{} is still trusted, because {} is\n", folder.display(), above.display())
        }
        (true, None) => format!("{} is no longer trusted\n", folder.display()),
        (false, None) => format!("{} was not trusted\n", folder.display()),
    })
}

/// What a trusted folder can make us run or allow, as text.
fn list_content(content: &TreeContent) -> String {
    let lines = content.iter().flat_map(|(folder, content)| {
        let place = if folder.is_empty() { String::new() } else { format!("{folder}: ") };
        content.lines().into_iter().map(move |line| format!("{place}{line}"))
    });
    list_lines("It can run or allow:", lines)
}

fn list_lines(title: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("{title}\n{lines}") }
}
