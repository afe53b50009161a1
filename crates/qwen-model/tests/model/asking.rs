//! Asking a model and looking at what comes back.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use qwen_events::{Finish, Message, Role, Sampling, Usage};
use qwen_model::{Model, ModelConfig, ModelError, Piece, Provider, Request, Secret, build};

use crate::server::Server;

/// The key that must not show up anywhere.
pub const KEY: &str = "sk-geheim-0123456789";

/// A request with one user message.
pub fn request(text: &str) -> Request {
    Request {
        system: "You help.".into(),
        situation: Arc::default(),
        messages: vec![Message::text(Role::User, text)].into(),
        tools: Arc::from([]),
        sampling: Sampling::default(),
        model: None,
        response_schema: None,
        caller: None,
        trace: None,
    }
}

/// A configuration for `server` that does not try twice.
pub fn config(server: &Server) -> ModelConfig {
    ModelConfig {
        base_url: Some(server.url()),
        api_key: Some(Secret::new(KEY)),
        max_retries: 0,
        retry_base: Duration::from_millis(1),
        ..ModelConfig::new(Provider::OpenAi, "qwen-coder")
    }
}

/// What a call gave.
#[derive(Debug)]
pub struct Outcome {
    pub pieces: Vec<Piece>,
    pub error: Option<ModelError>,
}

/// Calls `model` and collects everything.
pub async fn ask(model: &dyn Model, request: Request) -> Outcome {
    let mut stream = model.call(request);
    let mut outcome = Outcome { pieces: Vec::new(), error: None };
    while let Some(item) = stream.next().await {
        assert!(outcome.error.is_none(), "something follows an error: {item:?}");
        assert!(
            !matches!(outcome.pieces.last(), Some(Piece::Finish(_))),
            "something follows the finish: {item:?}"
        );
        match item {
            Ok(piece) => outcome.pieces.push(piece),
            Err(error) => outcome.error = Some(error),
        }
    }
    let shown = format!("{outcome:?}");
    assert!(!shown.contains(KEY), "the key shows: {shown}");
    outcome
}

/// Asks a server that was configured as [`config`] does.
pub async fn ask_server(server: &Server) -> Outcome {
    let model = build(&config(server)).unwrap();
    ask(&*model, request("hello")).await
}

/// Asks a server that answers with `bytes` and closes.
pub async fn answer_to(bytes: impl Into<Vec<u8>>) -> Outcome {
    ask_server(&Server::once(bytes).await).await
}

impl Outcome {
    pub fn text(&self) -> String {
        self.pieces
            .iter()
            .filter_map(|p| if let Piece::Text(text) = p { Some(&**text) } else { None })
            .collect()
    }

    pub fn thought(&self) -> String {
        self.pieces
            .iter()
            .filter_map(|p| if let Piece::Thought(text) = p { Some(&**text) } else { None })
            .collect()
    }

    /// The calls put together: id, name, arguments. Checks what every piece of a call promises.
    pub fn calls(&self) -> Vec<(String, String, String)> {
        let mut calls: Vec<(String, String, String)> = Vec::new();
        for piece in &self.pieces {
            let Piece::Call { index, id, name, arguments } = piece else { continue };
            let at = *index as usize;
            assert!(at <= calls.len(), "indexes count up: {:?}", self.pieces);
            if at == calls.len() {
                assert!(calls.iter().all(|call| call.0 != **id), "ids are unique: {:?}", self.pieces);
                calls.push((id.to_string(), name.to_string(), String::new()));
            }
            assert_eq!((&*calls[at].0, &*calls[at].1), (&**id, &**name));
            calls[at].2.push_str(arguments);
        }
        calls
    }

    pub fn finish(&self) -> Option<Finish> {
        self.pieces.iter().find_map(|p| if let Piece::Finish(finish) = p { Some(*finish) } else { None })
    }

    /// The usage: the last that came.
    pub fn usage(&self) -> Option<Usage> {
        self.pieces.iter().rev().find_map(|p| if let Piece::Usage(usage) = p { Some(*usage) } else { None })
    }

    pub fn retries(&self) -> Vec<(u32, u64, &'static str)> {
        let retry = |p: &Piece| match p {
            Piece::Retry { attempt, delay_ms, error, .. } => Some((*attempt, *delay_ms, error.code)),
            _ => None,
        };
        self.pieces.iter().filter_map(retry).collect()
    }

    /// The error's code.
    pub fn code(&self) -> &'static str {
        self.error.as_ref().map_or("", |error| error.0.code)
    }

    /// The error's words.
    pub fn message(&self) -> String {
        self.error.as_ref().map_or_else(String::new, |error| error.0.message.to_string())
    }
}
