//! What the interface asks the binary to do.

use std::sync::atomic::Ordering;
use std::time::Instant;

use qwen_events::{Command, SessionId};
use qwen_tui::Effect;

use super::super::clipboard::{self, Copied};
use super::super::external_editor;
use super::Running;
use crate::settings::add_allow_rule;

impl Running {
    pub(super) fn effects(&mut self) {
        for effect in self.terminal.effects() {
            match effect {
                Effect::Command(command) => self.unsent.push_back(command),
                Effect::Quit => {
                    self.unsent.push_back(Command::Cancel {
                        session_id: None,
                        prompt_id: None,
                        reason: "quit".into(),
                        request_id: None,
                    });
                    self.quit.get_or_insert_with(Instant::now);
                }
                Effect::Suspend => self.suspend(),
                Effect::Edit(text) => self.edit(&text),
                Effect::Copy(text) => self.copy(&text),
                Effect::Transcript(session) => self.show_transcript(session.as_ref()),
                Effect::ShowRecentTurns(session) => match self.driver.stored.recent(Some(&session)) {
                    Ok(turns) => self.terminal.show_recent_turns(&turns),
                    Err(error) => self.terminal.notify(&format!("The session cannot be shown: {error}")),
                },
                Effect::Remember(prompt) => {
                    if let Err(error) = self.driver.files.remember(&prompt) {
                        self.terminal.notify(&format!("The prompt history cannot be written: {error}"));
                    }
                }
                Effect::SaveDraft(text) => {
                    if let Err(error) = self.driver.files.save_draft(&text) {
                        self.terminal.notify(&format!("The draft cannot be saved: {error}"));
                    }
                }
                Effect::SaveRule(rule) => self.save_rule(&rule),
                Effect::Notify(_) if self.is_plain || !self.driver.notifies => {}
                Effect::Notify(text) => {
                    self.pending.extend_from_slice(&notification(&text, self.driver.in_tmux));
                }
                Effect::PasteImage => match self.driver.clipboard.image() {
                    Some(image) => self.terminal.paste_image(image),
                    None => self.terminal.notify("There is no picture in the clipboard."),
                },
                Effect::ReadImage(pasted) => {
                    if let Some(image) = clipboard::image_file(&pasted, &self.driver.trust.folder) {
                        self.terminal.replace_by_image(&pasted, image);
                    }
                }
                Effect::Trust(is_trusted) => self.trust(is_trusted),
            }
        }
    }

    /// Effects that must still be performed although the terminal may have disappeared.
    pub(super) fn effects_at_end(&mut self) {
        for effect in self.terminal.effects() {
            if let Effect::SaveDraft(text) = effect {
                // An error cannot be reported any more.
                let _ = self.driver.files.save_draft(&text);
            }
        }
    }

    fn copy(&mut self, text: &str) {
        match self.driver.clipboard.copy(text) {
            Copied::By(tool) => self.terminal.notify(&format!("Copied by {tool}.")),
            Copied::Asked(sequence) => {
                self.pending.extend_from_slice(sequence.as_bytes());
                self.terminal.notify("The terminal was asked to copy it (OSC 52); not every terminal does.");
            }
            Copied::Failed => self.terminal.notify("No clipboard accepts a text of this size."),
        }
    }

    fn save_rule(&mut self, rule: &str) {
        let done = match &self.driver.settings_file {
            Some(path) => match add_allow_rule(path, rule) {
                Ok(true) => format!("Saved to {}: {rule}", path.display()),
                Ok(false) => format!("{} has this rule already.", path.display()),
                Err(error) => error,
            },
            None => {
                "There is no home directory for settings; the rule applies to this session only.".to_owned()
            }
        };
        self.terminal.warn(&done);
    }

    /// Records the user's decision about the folder. A session without messages restarts with the folder's
    /// configuration.
    fn trust(&mut self, is_trusted: bool) {
        let request = &self.driver.trust;
        if !is_trusted {
            // Without the record, the next start asks again.
            let _ = self.driver.files.decline(&request.configuration);
            return;
        }
        let trusted = match (&request.list, request.folder.canonicalize()) {
            (Some(list), Ok(folder)) => {
                list.add(&folder, &request.content).map_err(|error| error.to_string())
            }
            (None, _) => Err("there is no home directory for the list".to_owned()),
            (_, Err(error)) => Err(error.to_string()),
        };
        match trusted {
            Err(error) => self.terminal.warn(&format!("The folder is not trusted: {error}")),
            Ok(_) if self.terminal.has_session() => {
                self.terminal
                    .warn("The folder is trusted. Its configuration is used when qwen starts here again.");
            }
            Ok(_) => {
                request.restart.store(true, Ordering::Relaxed);
                self.terminal.restart();
                self.quit.get_or_insert_with(Instant::now);
            }
        }
    }

    fn show_transcript(&mut self, session: Option<&SessionId>) {
        match self.driver.stored.all(session) {
            Ok((events, rewound)) => self.terminal.show_transcript(&events, &rewound),
            Err(error) => self.terminal.notify(&format!("There is no transcript: {error}")),
        }
    }

    fn edit(&mut self, text: &str) {
        self.release_screen();
        let edited = external_editor::edit(&self.driver.editor, &self.driver.files.folder(), text);
        self.acquire_screen();
        match edited {
            Ok(text) => self.terminal.edited(&text),
            Err(error) => self.terminal.notify(&format!("The editor failed: {error}")),
        }
    }
}

/// The bell, and a desktop notification for terminals that support it. The text is sanitized and on one line.
fn notification(text: &str, in_tmux: bool) -> Vec<u8> {
    let sequence = format!("\x1b]9;qwen: {text}\x1b\\");
    if in_tmux {
        // tmux passes it on only inside its own sequence, and always handles the bell.
        return format!("\x07\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")).into_bytes();
    }
    format!("\x07{sequence}").into_bytes()
}
