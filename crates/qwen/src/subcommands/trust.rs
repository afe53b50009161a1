//! `qwen trust`: manages the folders whose settings, hooks and MCP servers are used.

use qwen_events::{ErrorInfo, ErrorKind};

use crate::cli::TrustArgs;
use crate::settings::{Invocation, TrustList};

/// Runs the command and returns the text to print.
pub fn run(args: &TrustArgs, invocation: &Invocation) -> Result<String, ErrorInfo> {
    let input = |code, message: String| ErrorInfo::new(ErrorKind::Input, code, message);
    let list = TrustList::of(invocation).ok_or_else(|| {
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
        let new = list.add(&folder)?;
        let already = if new { "" } else { " already" };
        return Ok(format!("{} is{already} trusted, with all folders in it\n", folder.display()));
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
