//! One connection: a reader that receives requests, and a player that writes the replies.
//!
//! The reader continues while a reply is held, and so notices at once when the peer closes.

use std::io::{self, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use crate::http::{self, RawRequest};
use crate::reply::event::WireWriter;
use crate::request::without_situation;
use crate::state::{Shared, Stage};
use crate::{Reply, ReplyEvent, Request, Step, Wire, control, monotonic_ns};

struct Arrival {
    raw: RawRequest,
    at: Instant,
    at_ns: u64,
}

/// Closes the connection however the player ends, so that the reader ends too.
struct Hangup<'a> {
    number: usize,
    stream: &'a TcpStream,
    shared: &'a Shared,
}

impl Drop for Hangup<'_> {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        self.shared.update(|state| state.connections.remove(&self.number));
    }
}

/// The state of the connection after an answer.
#[derive(PartialEq)]
enum After {
    KeepOpen,
    Close,
}

pub(crate) fn serve_connection(number: usize, stream: &TcpStream, shared: &Shared) {
    // One write is one packet: separate writes of a test or benchmark arrive separately.
    let _ = stream.set_nodelay(true);
    let (arrivals, inbox) = mpsc::channel();
    thread::scope(|scope| {
        let _hangup = Hangup { number, stream, shared };
        scope.spawn(move || {
            let mut input = BufReader::new(stream);
            while let Ok(Some(raw)) = http::read_request(&mut input) {
                let arrival = Arrival { raw, at: Instant::now(), at_ns: monotonic_ns() };
                if arrivals.send(arrival).is_err() {
                    break;
                }
            }
            shared.update(|state| state.gone.insert(number));
        });
        for arrival in inbox {
            let keep_alive = arrival.raw.keep_alive;
            match answer(number, stream, shared, arrival) {
                Ok(After::KeepOpen) if keep_alive => {}
                _ => break,
            }
        }
    });
    shared.update(|state| state.gone.remove(&number));
}

fn answer(number: usize, stream: &TcpStream, shared: &Shared, arrival: Arrival) -> io::Result<After> {
    let Arrival { raw, at, at_ns } = arrival;
    let refuse = |status: u16, why: &str| {
        shared.update(|state| state.unexpected_requests.push(format!("{} {}", raw.method, raw.path)));
        write(stream, &http::complete_response(status, &[], why)).map(|()| After::KeepOpen)
    };
    if raw.path.starts_with("/control/") {
        let (status, body) = control::handle(shared, &raw);
        return write(stream, &http::complete_response(status, &[], &body)).map(|()| After::KeepOpen);
    }
    if raw.method == "GET"
        && raw.path.ends_with("/models")
        && let Some(names) = shared.lock().models.clone()
    {
        let data: Vec<_> =
            names.iter().map(|name| serde_json::json!({"id": name, "object": "model"})).collect();
        let list = serde_json::json!({"object": "list", "data": data}).to_string();
        return write(stream, &http::complete_response(200, &[], &list)).map(|()| After::KeepOpen);
    }
    let wire = match Wire::from_path(&raw.path) {
        Some(wire) if raw.method == "POST" => wire,
        _ => return refuse(404, "mock-model answers POST …/chat/completions and POST …/messages"),
    };
    let Ok(body) = serde_json::from_slice(&raw.body) else {
        return refuse(400, "mock-model: the body of the request is not valid JSON");
    };
    let request = Request {
        wire,
        path: raw.path,
        connection: number,
        headers: raw.headers,
        body: without_situation(body),
        bytes: raw.body,
        arrived: at,
        arrived_ns: at_ns,
    };
    let (ticket, request, reply) = shared.begin(request);
    let reply = reply.unwrap_or_else(|| {
        let text = request.last_user_text();
        Reply::status(
            500,
            &format!("mock-model: no reply is left for this request (last user message: {text:?})"),
        )
    });
    let mut player = Player { number, stream, shared, head_sent: false, writer: WireWriter::new(wire) };
    let played = player.play(&reply);
    let stage = if played.is_ok() { Stage::Complete } else { Stage::PeerGone };
    shared.end(ticket, stage);
    played
}

fn write(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)
}

struct Player<'a> {
    number: usize,
    stream: &'a TcpStream,
    shared: &'a Shared,
    head_sent: bool,
    writer: WireWriter,
}

impl Player<'_> {
    /// Plays a reply to its end; an error means that the peer or the mock closed the connection earlier.
    fn play(&mut self, reply: &Reply) -> io::Result<After> {
        for step in &reply.steps {
            match step {
                Step::Chunk(bytes) => self.send(bytes)?,
                Step::Event(event) => {
                    let bytes = self.writer.write(event);
                    self.send(&bytes)?;
                }
                Step::Stamp => {
                    let bytes = self.writer.write(&ReplyEvent::Text(format!("{};", monotonic_ns())));
                    self.send(&bytes)?;
                }
                Step::Head => self.send(&[])?,
                Step::Gate(name) => {
                    self.shared.update(|state| *state.reached.entry(name.clone()).or_default() += 1);
                    self.shared.hold(|state| {
                        state.open.contains(name) || state.stopping || state.gone.contains(&self.number)
                    });
                    self.still_there()?;
                }
                Step::Pause(time) => {
                    self.shared.wait(*time, |state| {
                        (state.stopping || state.gone.contains(&self.number)).then_some(())
                    });
                    self.still_there()?;
                }
                Step::Close => return Ok(After::Close),
                Step::Status(code, headers, body) => {
                    write(self.stream, &http::complete_response(*code, headers, body))?;
                    return Ok(After::KeepOpen);
                }
            }
        }
        let closing = self.writer.end();
        let mut out = self.frame(&closing);
        out.extend_from_slice(http::LAST_CHUNK);
        write(self.stream, &out)?;
        Ok(After::KeepOpen)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let out = self.frame(bytes);
        write(self.stream, &out)
    }

    /// The bytes as a chunk, preceded by the head for the first chunk.
    fn frame(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 16);
        if !std::mem::replace(&mut self.head_sent, true) {
            out.extend_from_slice(http::stream_head());
        }
        http::put_chunk(&mut out, bytes);
        out
    }

    fn still_there(&self) -> io::Result<()> {
        let state = self.shared.lock();
        if state.stopping || state.gone.contains(&self.number) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}
