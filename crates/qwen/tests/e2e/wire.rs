//! The wires: every dialect in every format that differs in it.

use std::thread;

/// A dialect in a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    pub dialect: &'static str,
    pub format: &'static str,
    /// `claude`: with `--include-partial-messages`.
    pub partial: bool,
}

const fn wire(dialect: &'static str, format: &'static str) -> Wire {
    Wire { dialect, format, partial: false }
}

pub const QWEN: Wire = wire("qwen", "stream-json");
pub const QWEN_CHUNK: Wire = wire("qwen", "stream-chunk-json");
pub const CLAUDE: Wire = wire("claude", "stream-json");
pub const CLAUDE_PARTIAL: Wire = Wire { partial: true, ..CLAUDE };
pub const LITE: Wire = wire("claude-lite", "stream-json");
pub const LOOM: Wire = wire("loom", "stream-json");
pub const EXPORT: Wire = wire("loom-export", "stream-json");
pub const CORE: Wire = wire("core", "stream-json");

/// The wires that are written as things happen.
pub const STREAMS: [Wire; 8] = [QWEN, QWEN_CHUNK, CLAUDE, CLAUDE_PARTIAL, LITE, LOOM, EXPORT, CORE];

/// The wires that are one document at the end.
pub const DOCUMENTS: [Wire; 6] = [
    wire("qwen", "json"),
    wire("claude", "json"),
    wire("claude-lite", "json"),
    wire("loom", "json"),
    wire("loom-export", "json"),
    wire("core", "json"),
];

impl Wire {
    /// The flags that ask for it.
    pub fn flags(self) -> Vec<&'static str> {
        let mut flags = vec!["--dialect", self.dialect, "--output-format", self.format];
        if self.partial {
            flags.push("--include-partial-messages");
        }
        flags
    }

    /// Whether it is one document at the end.
    pub fn is_document(self) -> bool {
        self.format == "json"
    }

    /// Whether pieces of text are written as they come.
    pub fn shows_pieces(self) -> bool {
        !self.is_document() && self != QWEN && self != CLAUDE
    }
}

/// Runs `check` for each wire, all beside each other; the thread that fails bears the wire's name.
#[track_caller]
pub fn each(wires: &[Wire], check: impl Fn(Wire) + Sync) {
    let check = &check;
    let failed: Vec<&str> = thread::scope(|scope| {
        let start = |wire: &Wire| {
            let named = thread::Builder::new().name(wire.flags().join(" "));
            let wire = *wire;
            named.spawn_scoped(scope, move || check(wire)).unwrap()
        };
        let started: Vec<_> = wires.iter().map(start).collect();
        let ended =
            started.into_iter().zip(wires).filter_map(|(thread, wire)| thread.join().err().map(|_| wire));
        ended.map(|wire| wire.dialect).collect()
    });
    assert!(failed.is_empty(), "failed, see above, in: {failed:?}");
}

/// Every wire.
pub fn all() -> Vec<Wire> {
    STREAMS.into_iter().chain(DOCUMENTS).collect()
}
