//! `qwen` on a terminal: an interactive session.
//!
//! The session runs as it does for any host: `Command`s in, `Event`s out, questions as control requests. The
//! terminal is one more host, on a separate thread: [`driver`] owns the tty and feeds `qwen_tui::Terminal`,
//! which is a pure state machine. Events are queued for a slow terminal, and their senders wait only when the
//! queue is full. A busy session never delays a key.

mod clipboard;
mod driver;
mod external_editor;
mod files;
mod first_run;
mod greeting;
mod guardian;
mod modes;
mod stderr;
mod tty;
mod untrusted;
mod wake;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use qwen_engine::hooks::Announced;
use qwen_engine::log::{Replay, Store};
use qwen_engine::{Cancel, Stop};
use qwen_events::{Body, EndStatus, Event, PromptId, SessionId};
use qwen_tui::RecentTurns;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use self::clipboard::Clipboard;
use self::driver::{Driver, DriverMessage, TrustRequest};
use self::files::Files;
use self::tty::Tty;
use self::wake::{Wake, Waker};
use crate::cli::Run;
use crate::io::stream;
use crate::roles::worker;
use crate::runtime::{exit, signals};
use crate::session::{prompt, setup};
use crate::settings::{Config, Invocation, TrustList};

/// True if this run is an interactive session: input and output are a terminal, and no prompt or format
/// selects another role.
pub fn is_interactive(run: &Run, config: &Config) -> bool {
    let has_prompt = run.prompt.is_some() || !run.words.is_empty();
    let is_data = config.stream.structured_input
        || config.stream.format.is_some()
        || config.agent.answer_schema.is_some();
    let is_deferred = run.ask_later || !run.answer.is_empty();
    !has_prompt
        && !is_data
        && !is_deferred
        && std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal()
}

/// Runs the session to its end and returns the exit code.
pub async fn run(run: &Run, invocation: &Invocation, mut config: Config) -> u8 {
    // A session without a usable model still opens; the first prompt reports what is missing.
    config.stream.structured_input = true;
    if let Ok(model) = &mut config.model.config {
        model.read_interval = driver::FRAME;
    }
    let config = Arc::new(config);
    let ending = Cancel::default();
    let started = signals::listen(&ending).and_then(|()| Listener::new());
    let (tty, wake, mut listener) = match (Tty::open(), Wake::pair(), started) {
        (Ok(tty), Ok(wake), Ok(listener)) => (tty, wake, listener),
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            exit::report(&format!("qwen: the terminal cannot be used: {error}"));
            return 1;
        }
    };
    let (wake, waker) = wake;
    let files = Files::new(&config);
    config.extensions.hooks.announce(Announced::Everything);
    let untrusted = untrusted::find_untrusted(run, &config, invocation);
    let options = greeting::options(run, &config, invocation, &tty, &files, &untrusted.lines);
    let restart = Arc::new(AtomicBool::new(false));
    let stored = StoredEvents::new(&config);
    // A new session has no log yet, so there is nothing to show.
    let recent = stored.recent(None).unwrap_or_default();
    let (messages, received) = mpsc::channel(stream::CAPACITY);
    let (commands, incoming) = mpsc::channel(driver::COMMANDS);
    let driver = Driver {
        tty,
        wake,
        messages: received,
        commands: Some(commands),
        files,
        editor: external_editor::command(invocation),
        clipboard: Clipboard::new(invocation),
        settings_file: invocation.qwen_home().map(|home| invocation.cwd.join(home).join("settings.json")),
        stored,
        trust: TrustRequest {
            configuration: options.untrusted.clone(),
            content: untrusted.content,
            folder: invocation.cwd.clone(),
            list: TrustList::locate(invocation),
            restart: restart.clone(),
        },
        notifies: config.settings.terminal.notifications.unwrap_or(true),
        in_tmux: invocation.var("TMUX").is_some(),
        ending: ending.clone(),
    };
    let thread =
        thread::Builder::new().name("terminal".to_owned()).spawn(move || driver.run(options, recent));
    let thread = match thread {
        Ok(thread) => thread,
        Err(error) => {
            exit::report(&format!("qwen: the terminal's thread cannot be started: {error}"));
            return 1;
        }
    };
    let (sender, events) = mpsc::channel(stream::CAPACITY);
    let emit = setup::emitter(&config, sender);
    let given = prompt::join_prompt_arguments(run);
    let served = worker::serve_person(config, &given, incoming, emit, ending.clone());
    let hangup = listener.listen(messages.downgrade(), &waker, &ending);
    let passed = pass_on(events, messages, waker.clone());
    let code = tokio::select! {
        (code, ()) = async { tokio::join!(served, passed) } => code,
        () = hangup => 1,
    };
    waker.wake();
    // The thread ends when the message channel is closed or the terminal disappears.
    let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    if restart.load(Ordering::Relaxed) {
        let error = start_again();
        exit::report(&format!("qwen: the folder is trusted; start qwen again: {error}"));
    }
    code
}

/// Replaces this process by a new one with the same arguments, which reads the folder's configuration.
/// Returns only if that fails.
fn start_again() -> std::io::Error {
    use std::os::unix::process::CommandExt;
    match std::env::current_exe() {
        Ok(program) => std::process::Command::new(program).args(std::env::args_os().skip(1)).exec(),
        Err(error) => error,
    }
}

/// Reads the stored events of sessions from their logs.
struct StoredEvents {
    /// None if sessions are not recorded.
    store: Option<Store>,
    /// The session that was started.
    started: SessionId,
}

impl StoredEvents {
    fn new(config: &Config) -> Self {
        let store = config.session.store.clone().filter(|_| config.session.record);
        Self { store, started: config.session.id.clone() }
    }

    /// All events of a session, and the turns that were rewound. `None` is the session that was started.
    fn all(&self, session: Option<&SessionId>) -> Result<(Vec<Event>, Vec<PromptId>), String> {
        let mut events = Vec::new();
        let rewound = self.for_each(session, |event| events.push(event))?;
        Ok((events, rewound))
    }

    /// The last turns of a session, without those that were rewound.
    fn recent(&self, session: Option<&SessionId>) -> Result<RecentTurns, String> {
        let mut turns = RecentTurns::default();
        let rewound = self.for_each(session, |event| turns.push(event))?;
        if !rewound.is_empty() {
            turns = RecentTurns::default();
            let mut is_rewound = false;
            self.for_each(session, |event| {
                if let Body::TurnStart(start) = &event.body {
                    is_rewound = rewound.contains(&start.prompt_id);
                }
                if !is_rewound {
                    turns.push(event);
                }
            })?;
        }
        Ok(turns)
    }

    /// Calls `handle` with each event of a session. Returns the turns that were rewound.
    fn for_each(
        &self,
        session: Option<&SessionId>,
        mut handle: impl FnMut(Event),
    ) -> Result<Vec<PromptId>, String> {
        let store = self.store.as_ref().ok_or("sessions are not recorded")?;
        let reader = store.read(session.unwrap_or(&self.started)).map_err(|error| error.to_string())?;
        let mut replay = Replay::new(reader);
        while let Some(event) = replay.next_event().map_err(|error| error.to_string())? {
            handle(event);
        }
        Ok(replay.undone().to_vec())
    }
}

/// Forwards events to the terminal's thread. The channel is bounded: a terminal that reads nothing blocks the
/// session.
async fn pass_on(mut events: mpsc::Receiver<Event>, messages: mpsc::Sender<DriverMessage>, waker: Waker) {
    while let Some(event) = events.recv().await {
        let answers_key = driver::answers_key(&event);
        let message = DriverMessage::Event(Box::new(event));
        let sent = match messages.try_send(message) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Full(message)) => {
                waker.wake();
                messages.send(message).await.map_err(drop)
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(()),
        };
        if sent.is_err() {
            // The terminal has disappeared and the session is ending. Its remaining events are discarded.
            while events.recv().await.is_some() {}
            return;
        }
        if answers_key {
            waker.wake();
        } else {
            waker.wake_if_idle();
        }
    }
}

/// Signals that concern a terminal.
struct Listener {
    resized: Signal,
    hung_up: Signal,
    suspended: Signal,
    continued: Signal,
}

impl Listener {
    fn new() -> std::io::Result<Self> {
        let of = |signal: rustix::process::Signal| SignalKind::from_raw(signal.as_raw());
        Ok(Self {
            resized: signal(SignalKind::window_change())?,
            hung_up: signal(SignalKind::hangup())?,
            suspended: signal(of(rustix::process::Signal::TSTP))?,
            continued: signal(of(rustix::process::Signal::CONT))?,
        })
    }

    /// Forwards signals as long as the session lives; never returns.
    async fn listen(&mut self, messages: mpsc::WeakSender<DriverMessage>, waker: &Waker, ending: &Cancel) {
        loop {
            let message = tokio::select! {
                _ = self.resized.recv() => DriverMessage::Resized,
                _ = self.suspended.recv() => DriverMessage::Suspend,
                _ = self.continued.recv() => DriverMessage::Continued,
                _ = self.hung_up.recv() => {
                    ending.stop(Stop { status: EndStatus::Interrupted, error: None });
                    continue;
                }
            };
            if let Some(messages) = messages.upgrade() {
                // The thread may have ended already.
                let _ = messages.send(message).await;
            }
            waker.wake();
        }
    }
}
