//! The clipboard: a native tool, tmux, or the terminal itself, whichever is available.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use qwen_events::{Media, MediaSource, image_type};
use rustix::fs::{Mode, OFlags};

use crate::settings::Invocation;

/// The largest text that is sent by OSC 52, in bytes. Terminals reject larger ones.
const MAX_OSC52: usize = 100_000;

/// The largest string that GNU screen passes on, in bytes.
const SCREEN_STRING: usize = 250;

/// The available methods, best first.
pub struct Clipboard {
    tools: Vec<(&'static str, &'static [&'static str])>,
    multiplexer: Multiplexer,
}

/// The program between us and the terminal, which passes a sequence on only in its own form.
enum Multiplexer {
    None,
    Tmux,
    Screen,
}

impl Multiplexer {
    /// The bytes that make the terminal receive `sequence`.
    fn wrap(&self, sequence: &str) -> String {
        match self {
            Self::None => sequence.to_owned(),
            Self::Tmux => format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")),
            // It passes on strings of limited length, one after the other. The sequence is ASCII.
            Self::Screen => {
                let parts = sequence.as_bytes().chunks(SCREEN_STRING).map(String::from_utf8_lossy);
                parts.map(|part| format!("\x1bP{part}\x1b\\")).collect()
            }
        }
    }
}

/// The result of a copy.
pub enum Copied {
    /// This program accepted the text.
    By(&'static str),
    /// These bytes ask the terminal to copy the text; it sends no confirmation.
    Asked(String),
    /// No method is available.
    Failed,
}

impl Clipboard {
    /// The methods that this environment offers.
    pub fn new(invocation: &Invocation) -> Self {
        let mut tools: Vec<(&'static str, &'static [&'static str])> = Vec::new();
        if invocation.var("WAYLAND_DISPLAY").is_some() {
            tools.push(("wl-copy", &[]));
        }
        if invocation.var("DISPLAY").is_some() {
            tools.push(("xclip", &["-selection", "clipboard"]));
            tools.push(("xsel", &["--input", "--clipboard"]));
        }
        if cfg!(target_os = "macos") {
            tools.push(("pbcopy", &[]));
        }
        let mut multiplexer = Multiplexer::None;
        if invocation.var("TMUX").is_some() {
            tools.push(("tmux", &["load-buffer", "-w", "-"]));
            multiplexer = Multiplexer::Tmux;
        } else if invocation.var("STY").is_some() {
            multiplexer = Multiplexer::Screen;
        }
        Self { tools, multiplexer }
    }

    /// Copies a text to the clipboard.
    pub fn copy(&self, text: &str) -> Copied {
        for (tool, args) in &self.tools {
            if run(tool, args, text).is_ok() {
                return Copied::By(tool);
            }
        }
        if text.len() > MAX_OSC52 {
            return Copied::Failed;
        }
        use base64::Engine as _;
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        Copied::Asked(self.multiplexer.wrap(&format!("\x1b]52;c;{encoded}\x07")))
    }
}

/// The largest picture that is read from the clipboard, in bytes.
const MAX_IMAGE: usize = 20 * 1024 * 1024;

impl Clipboard {
    /// The picture in the clipboard, if there is one and a tool can read it.
    pub fn image(&self) -> Option<Media> {
        let readers = self.tools.iter().filter_map(|(tool, _)| match *tool {
            "wl-copy" => Some(("wl-paste", &["--no-newline", "--type", "image/png"][..])),
            "xclip" => Some(("xclip", &["-selection", "clipboard", "-t", "image/png", "-o"][..])),
            "pbcopy" => Some(("pngpaste", &["-"][..])),
            _ => None,
        });
        for (tool, args) in readers {
            let read = Command::new(tool).args(args).stdin(Stdio::null()).stderr(Stdio::null()).output();
            if let Ok(output) = read
                && output.status.success()
                && let Some(image) = image(&output.stdout)
            {
                return Some(image);
            }
        }
        None
    }
}

/// The picture in the file that a pasted text names: a path, perhaps in quotes or with escaped blanks, as
/// terminals insert it for a file that is dropped on them.
pub fn image_file(pasted: &str, folder: &Path) -> Option<Media> {
    let text = pasted.trim();
    let unquoted = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let unquoted = unquoted.or_else(|| text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')));
    let path = unquoted.map_or_else(|| text.replace('\\', ""), str::to_owned);
    // A pipe of that name must not block the terminal.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder.join(path), flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_IMAGE as u64 + 1).read_to_end(&mut bytes).ok()?;
    image(&bytes)
}

/// A picture for the model, if these bytes are one of acceptable size.
fn image(bytes: &[u8]) -> Option<Media> {
    use base64::Engine as _;
    let mime_type = image_type(bytes).filter(|_| bytes.len() <= MAX_IMAGE)?;
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    Some(Media { mime_type: mime_type.into(), source: MediaSource::Base64(encoded.into()) })
}

fn run(tool: &str, args: &[&str], text: &str) -> io::Result<()> {
    let mut command = Command::new(tool);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes())?;
    }
    if child.wait()?.success() { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
}
