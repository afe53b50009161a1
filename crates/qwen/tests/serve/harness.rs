//! A server in a clean place, and a small HTTP client that sends exactly what a test writes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use mock_model::process::{self, Program, Run};
use mock_model::{MockModel, WAIT_LIMIT};
use serde_json::{Value, json};

/// The token that the tests give the server.
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A program that serves with a model, at a port that the system chooses.
pub fn program(mock: &MockModel) -> Program {
    let listen = ["serve", "--listen", "127.0.0.1:0"];
    process::qwen(env!("CARGO_BIN_EXE_qwen")).args(listen).with_model(mock).env("QWEN_SERVER_TOKEN", TOKEN)
}

/// A running server.
pub struct Server {
    pub run: Run,
    pub port: u16,
    pub token: String,
}

/// A server with a scripted model.
pub fn serve(mock: &MockModel) -> Server {
    start(&program(mock))
}

/// Starts a server and waits until it listens.
#[track_caller]
pub fn start(program: &Program) -> Server {
    let run = program.start();
    run.wait_for_stderr("serving on ");
    let text = run.stderr();
    let address = text.split("serving on ").nth(1).unwrap();
    let port = address.split(':').nth(2).unwrap();
    let digits: String = port.chars().take_while(char::is_ascii_digit).collect();
    Server { run, port: digits.parse().unwrap(), token: TOKEN.to_owned() }
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of the error.
    #[track_caller]
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

impl Server {
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(WAIT_LIMIT)).unwrap();
        stream.set_write_timeout(Some(WAIT_LIMIT)).unwrap();
        stream
    }

    /// The value of `Host` under which the server is known.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sends these bytes and reads the answer until the connection ends.
    #[track_caller]
    pub fn raw(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        // A server that refuses a request early does not read all of it.
        let _ = stream.write_all(request.as_bytes());
        read_answer(&mut BufReader::new(stream))
    }

    /// Sends a request with exactly these headers besides `Connection`.
    #[track_caller]
    pub fn with_headers(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        self.raw(&format!("{text}\r\n{body}"))
    }

    /// Sends an authorised request.
    #[track_caller]
    pub fn send(&self, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let host = self.host();
        let mut headers = vec![("Host", host.as_str()), ("Authorization", bearer.as_str())];
        if !body.is_empty() {
            headers.push(("Content-Type", "application/json"));
        }
        self.with_headers(method, path, &headers, body)
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "")
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "callers write the body in place")]
    pub fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, &body.to_string())
    }

    /// Creates a session and returns its id.
    #[track_caller]
    pub fn session(&self) -> String {
        let answer = self.post("/api/sessions", json!({}));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Submits a prompt and returns its id and the number after which its events begin.
    #[track_caller]
    pub fn prompt(&self, session: &str, text: &str) -> (String, u64) {
        let answer = self.post(&format!("/api/sessions/{session}/prompts"), json!({"prompt": text}));
        assert_eq!(answer.status, 202, "{answer:?}");
        let answer = answer.json();
        (answer["prompt_id"].as_str().unwrap().to_owned(), answer["after"].as_u64().unwrap())
    }

    /// Follows the events of a session after a number.
    #[track_caller]
    pub fn follow(&self, session: &str, after: u64) -> Events {
        self.stream(&format!("/api/sessions/{session}/events"), Some(&after.to_string()))
    }

    /// Opens an event stream.
    #[track_caller]
    pub fn stream(&self, path: &str, last_event_id: Option<&str>) -> Events {
        let mut stream = self.connect();
        let id = last_event_id.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let host = self.host();
        let token = &self.token;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{id}\r\n")
            .unwrap();
        let mut reader = BufReader::new(stream);
        let head = read_head(&mut reader);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Events { chunks: reader, text: Vec::new(), ended: false }
    }

    /// Submits a prompt and reads up to its end.
    #[track_caller]
    pub fn turn(&self, session: &str, text: &str) -> Vec<Event> {
        let (_, after) = self.prompt(session, text);
        self.follow(session, after).until(is_end)
    }
}

fn read_head(reader: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            break;
        }
    }
    head
}

#[track_caller]
pub fn read_answer(reader: &mut impl BufRead) -> Answer {
    let head = read_head(reader);
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    // A connection that is reset after its answer has been answered.
    let _ = reader.read_to_end(&mut body);
    Answer { status, head, body: String::from_utf8(body).unwrap() }
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: Option<String>,
    pub name: Option<String>,
    pub data: String,
}

impl Event {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn number(&self) -> u64 {
        self.id.as_deref().unwrap().parse().unwrap()
    }
}

/// An event stream that is read.
pub struct Events {
    chunks: BufReader<TcpStream>,
    text: Vec<u8>,
    ended: bool,
}

impl Events {
    /// The next event; none at the end of the stream.
    #[track_caller]
    pub fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(at) = self.text.windows(2).position(|pair| pair == b"\n\n") {
                let piece: Vec<u8> = self.text.drain(..at + 2).collect();
                if let Some(event) = parse(&String::from_utf8(piece).unwrap()) {
                    return Some(event);
                }
                continue;
            }
            if self.ended {
                return None;
            }
            self.read_chunk();
        }
    }

    #[track_caller]
    fn read_chunk(&mut self) {
        let mut size = String::new();
        if self.chunks.read_line(&mut size).unwrap_or(0) == 0 {
            self.ended = true;
            return;
        }
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        if self.chunks.read_exact(&mut chunk).is_err() || size == 0 {
            self.ended = true;
            return;
        }
        self.text.extend_from_slice(&chunk[..size]);
    }

    /// Events up to the one that `last` accepts.
    #[track_caller]
    pub fn until(&mut self, last: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let Some(event) = self.next() else { panic!("the stream ended after {events:#?}") };
            events.push(event.clone());
            if last(&event) {
                return events;
            }
        }
    }
}

fn parse(text: &str) -> Option<Event> {
    let mut event = Event { id: None, name: None, data: String::new() };
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("id", id)) => event.id = Some(id.to_owned()),
            Some(("event", name)) => event.name = Some(name.to_owned()),
            Some(("data", data)) => {
                if !event.data.is_empty() {
                    event.data.push('\n');
                }
                event.data.push_str(data);
            }
            _ => {}
        }
    }
    (!event.data.is_empty()).then_some(event)
}

/// True for the terminal record of a turn.
pub fn is_end(event: &Event) -> bool {
    event.json()["metadata"]["turn"].is_object()
}

/// True for a permission request.
pub fn is_question(event: &Event) -> bool {
    event.json()["subtype"] == "can_use_tool"
}

/// The status of a turn's end.
pub fn status(events: &[Event]) -> String {
    events.last().unwrap().json()["metadata"]["turn"]["status"].as_str().unwrap().to_owned()
}

/// The text that the model wrote in these events.
pub fn text(events: &[Event]) -> String {
    events
        .iter()
        .filter_map(|event| event.json()["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect()
}

/// A reply that calls a shell command which needs permission.
pub fn asks(id: &str) -> mock_model::Reply {
    mock_model::Reply::call(
        id,
        "run_shell_command",
        &json!({"command": format!("touch {id}.txt")}).to_string(),
    )
}
