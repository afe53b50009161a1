//! A collector of traces on loopback: it notes what it is sent and answers as the test wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::Value;

/// How a collector behaves.
#[derive(Clone)]
pub enum Manner {
    /// It takes what it is given.
    Takes,
    /// It answers with this status line and body.
    Says(&'static str, String),
    /// It reads the request and says nothing, for ever.
    Hangs,
    /// It answers with bytes that are no HTTP.
    Babbles,
    /// It answers without end.
    Floods,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Export {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Export {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The collector. It listens until the test ends.
pub struct Collector {
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    exports: Mutex<Vec<Export>>,
    news: Condvar,
}

impl Collector {
    pub fn new() -> Self {
        Self::of(Manner::Takes)
    }

    pub fn of(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared: Arc<Shared> = Arc::default();
        let noted = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (manner, noted) = (manner.clone(), noted.clone());
                std::thread::spawn(move || serve(stream, &manner, &noted));
            }
        });
        Self { port, shared }
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What was sent so far.
    pub fn exports(&self) -> Vec<Export> {
        self.shared.exports.lock().unwrap().clone()
    }

    /// Waits for so many requests.
    pub fn wait_for(&self, count: usize) -> Vec<Export> {
        let exports = self.shared.exports.lock().unwrap();
        let patience = Duration::from_secs(30);
        let (exports, waited) =
            self.shared.news.wait_timeout_while(exports, patience, |exports| exports.len() < count).unwrap();
        assert!(!waited.timed_out(), "only {} of {count} exports came", exports.len());
        exports.clone()
    }

    /// All spans so far.
    pub fn spans(&self) -> Spans {
        Spans::read(self.exports().iter().map(|export| export.body.as_str()))
    }
}

/// A client that breaks off is its own affair.
fn serve(stream: TcpStream, manner: &Manner, shared: &Shared) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let path = line.split(' ').nth(1)?.to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let export = Export { path, headers, body: String::from_utf8(body).unwrap() };
        shared.exports.lock().unwrap().push(export);
        shared.news.notify_all();
        match manner {
            Manner::Takes => answer(&mut writer, "200 OK", "{}")?,
            Manner::Says(status, body) => answer(&mut writer, status, body)?,
            Manner::Hangs => {
                reader.read_line(&mut String::new()).ok()?;
            }
            Manner::Babbles => writer.write_all(b"\x00\xff nonsense\r\n\r\n").ok()?,
            Manner::Floods => {
                writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n").ok()?;
                while writer.write_all(&[b'x'; 8192]).is_ok() {}
            }
        }
        if matches!(manner, Manner::Babbles | Manner::Floods) {
            return None;
        }
    }
}

fn answer(stream: &mut TcpStream, status: &str, body: &str) -> Option<()> {
    let text = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).ok()
}

/// Spans, whoever sent them.
#[derive(Debug)]
pub struct Spans(pub Vec<Value>);

impl Spans {
    /// The spans of some bodies of OTLP.
    pub fn read<'a>(bodies: impl IntoIterator<Item = &'a str>) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut spans = Vec::new();
        for body in bodies {
            let body: Value = serde_json::from_str(body).unwrap();
            for resource in list(&body["resourceSpans"]) {
                for scope in list(&resource["scopeSpans"]) {
                    spans.extend(list(&scope["spans"]));
                }
            }
        }
        Self(spans)
    }

    /// Their names, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|span| span["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        names
    }

    /// The spans of a name.
    pub fn all(&self, name: &str) -> Vec<&Value> {
        self.0.iter().filter(|span| span["name"] == name).collect()
    }

    /// The one span of a name.
    #[track_caller]
    pub fn one(&self, name: &str) -> &Value {
        let found = self.all(name);
        assert_eq!(found.len(), 1, "{name} in {:?}", self.names());
        found[0]
    }
}

/// What a span says under a key: numbers as numbers, lists as lists.
pub fn said(span: &Value, key: &str) -> Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found: Vec<&Value> = attributes.iter().filter(|attribute| attribute["key"] == key).collect();
    assert!(found.len() < 2, "{key} is said twice in {span}");
    found.first().map_or(Value::Null, |attribute| plain(&attribute["value"]))
}

fn plain(value: &Value) -> Value {
    if let Some(number) = value["intValue"].as_str() {
        return number.parse::<i64>().unwrap().into();
    }
    if let Some(values) = value["arrayValue"]["values"].as_array() {
        return values.iter().map(plain).collect();
    }
    for key in ["stringValue", "doubleValue"] {
        if !value[key].is_null() {
            return value[key].clone();
        }
    }
    Value::Null
}
