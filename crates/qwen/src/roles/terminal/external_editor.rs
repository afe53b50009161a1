//! `Ctrl+G`: edits the prompt in the user's editor.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::settings::Invocation;

/// The user's editor, as a shell would start it.
pub fn command(invocation: &Invocation) -> String {
    invocation.var("VISUAL").or_else(|| invocation.var("EDITOR")).unwrap_or("vi").to_owned()
}

/// Lets the user edit `text` and returns the result. The editor owns the terminal until it ends.
pub fn edit(editor: &str, folder: &Path, text: &str) -> io::Result<String> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("prompt-{}.md", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(&path)?.write_all(text.as_bytes())?;
    let result = run(editor, &path);
    let edited = result.and_then(|()| std::fs::read_to_string(&path));
    // The text is in memory; a left-over file does no harm.
    let _ = std::fs::remove_file(&path);
    edited
}

fn run(editor: &str, path: &Path) -> io::Result<()> {
    // Our own file description is non-blocking, which editors do not expect.
    let fd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let out = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(path)
        .stdin(Stdio::from(fd))
        .stderr(Stdio::from(out.try_clone()?))
        .stdout(Stdio::from(out))
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{editor} ended with {status}"))) }
}
