//! The mock as a program: serves a script or a flood of chunks until standard input closes.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::time::Duration;

use serde_json::json;

use crate::{MockModel, Reply, ReplyEvent, Request, Script, Source, Step, Wire, sse};

pub const USAGE: &str = "\
mock-model [--script FILE.json] [--log FILE]
mock-model [--chunks N] [--chunk-text T] [--write-size one|many] [--delay-us D] [--stamp] [--log FILE]

Prints {\"port\":…,\"base_url\":…} and serves until standard input closes.
  --script FILE    replies, see the documentation of mock_model::Script
  --chunks N       every reply has N pieces of text (default 1)
  --chunk-text T   each of them says T (default \"word \")
  --write-size W   one: a write for each; many: as many as fit into 16 KiB (default one)
  --delay-us D     waits between the writes
  --stamp          each piece says when it was written, as `<nanoseconds>;` of the monotonic clock
  --log FILE       appends each request as a line of JSON";

/// The size of a write that combines many chunks.
const MANY: usize = 16 * 1024;

/// Enough for two thousand connections, each of which has two.
const DESCRIPTORS: u64 = 4096;

/// Serves what the arguments specify.
pub fn run(args: impl IntoIterator<Item = String>) -> Result<(), String> {
    let options = Options::parse(args)?;
    reserve_descriptors();
    let mock = MockModel::try_start()
        .map_err(|error| format!("cannot listen on the loopback interface: {error}"))?;
    if let Some(path) = &options.log {
        let log = File::options().create(true).append(true).open(path);
        let log = log.map_err(|error| format!("cannot write the log {path}: {error}"))?;
        mock.shared.update(|state| state.log = Some(log));
    }
    if let Some(path) = &options.script {
        let text =
            fs::read_to_string(path).map_err(|error| format!("cannot read the script {path}: {error}"))?;
        mock.answer_with(Script::parse(&text).map_err(|error| format!("{path}: {error}"))?);
    } else {
        mock.answer_with(Flood::new(&options));
    }
    announce(&mock).map_err(|error| format!("cannot write to standard output: {error}"))?;
    let mut rest = Vec::new();
    io::stdin().read_to_end(&mut rest).map_err(|error| format!("cannot read standard input: {error}"))?;
    Ok(())
}

/// Enlarges the table of descriptors while there is one thread. Later, the system would wait for every thread
/// whenever the table is full, and a measurement would take that for the time of the program it measures.
fn reserve_descriptors() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    if let Ok(last) = i32::try_from(limit.min(DESCRIPTORS).saturating_sub(1)) {
        // Closed at once: the table keeps its size. Without it, it grows as it is needed.
        let _ = rustix::io::fcntl_dupfd_cloexec(io::stdin(), last);
    }
}

fn announce(mock: &MockModel) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{}",
        json!({ "port": mock.port(), "base_url": mock.base_url(), "origin": mock.origin() })
    )?;
    out.flush()
}

struct Options {
    script: Option<String>,
    log: Option<String>,
    chunks: usize,
    chunk_text: String,
    many: bool,
    delay: Duration,
    stamp: bool,
}

impl Options {
    fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            script: None,
            log: None,
            chunks: 1,
            chunk_text: "word ".to_owned(),
            many: false,
            delay: Duration::ZERO,
            stamp: false,
        };
        let mut args = args.into_iter();
        while let Some(flag) = args.next() {
            if flag == "--stamp" {
                options.stamp = true;
                continue;
            }
            let value = args.next().ok_or_else(|| format!("{flag} wants a value\n\n{USAGE}"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{flag} wants a number, not {value:?}"));
            match flag.as_str() {
                "--script" => options.script = Some(value),
                "--log" => options.log = Some(value),
                "--chunk-text" => options.chunk_text = value,
                "--chunks" => options.chunks = usize::try_from(number()?).unwrap_or(usize::MAX),
                "--delay-us" => options.delay = Duration::from_micros(number()?),
                "--write-size" if value == "one" || value == "many" => options.many = value == "many",
                _ => return Err(format!("{flag} {value} is nothing that mock-model knows\n\n{USAGE}")),
            }
        }
        Ok(options)
    }
}

/// Sends the same long answer to every client.
struct Flood {
    chunks: usize,
    text: String,
    many: bool,
    delay: Duration,
    stamp: bool,
}

impl Flood {
    fn new(options: &Options) -> Self {
        Self {
            chunks: options.chunks,
            text: options.chunk_text.clone(),
            many: options.many,
            delay: options.delay,
            stamp: options.stamp,
        }
    }
}

impl Source for Flood {
    fn reply(&mut self, request: &Request) -> Option<Reply> {
        // Precomputed bytes if the wire allows it, to minimise the cost of the server.
        let ready = (request.wire == Wire::OpenAi && !self.stamp).then(|| sse::text(&self.text));
        let piece = || match &ready {
            Some(step) => step.clone(),
            None if self.stamp => Step::Stamp,
            None => ReplyEvent::Text(self.text.clone()).step(),
        };
        let mut steps = Vec::new();
        for _ in 0..self.chunks {
            if !self.delay.is_zero() {
                steps.push(Step::Pause(self.delay));
            }
            steps.push(piece());
        }
        let reply = if self.many { Reply::new(steps).coalesced(MANY) } else { Reply::new(steps) };
        let tokens = ReplyEvent::Usage { input: 10, output: self.chunks as u64 };
        Some(Reply { steps: reply.steps.into_iter().chain([tokens.step()]).collect() })
    }
}
