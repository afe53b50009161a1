//! The clipboard: a native tool, tmux, or the terminal itself, whichever is available.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use qwen_events::{Media, MediaSource};

use crate::settings::Invocation;

/// The largest text that is sent by OSC 52, in bytes. Terminals reject larger ones.
const MAX_OSC52: usize = 100_000;

/// The available methods, best first.
pub struct Clipboard {
    tools: Vec<(&'static str, &'static [&'static str])>,
    in_tmux: bool,
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
        let in_tmux = invocation.var("TMUX").is_some();
        if in_tmux {
            tools.push(("tmux", &["load-buffer", "-w", "-"]));
        }
        Self { tools, in_tmux }
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
        let sequence = format!("\x1b]52;c;{encoded}\x07");
        Copied::Asked(if self.in_tmux {
            format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))
        } else {
            sequence
        })
    }
}

/// The largest picture that is read from the clipboard, in bytes.
const MAX_IMAGE: usize = 20 * 1024 * 1024;

impl Clipboard {
    /// The picture in the clipboard, if there is one and a tool can read it.
    pub fn image(&self) -> Option<Media> {
        use base64::Engine as _;
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
                && output.stdout.starts_with(b"\x89PNG")
                && output.stdout.len() <= MAX_IMAGE
            {
                let encoded = base64::engine::general_purpose::STANDARD.encode(&output.stdout);
                let source = MediaSource::Base64(encoded.into());
                return Some(Media { mime_type: "image/png".into(), source });
            }
        }
        None
    }
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
