//! The node that writes the reply from the best result.

use std::sync::Arc;

use qwen_events::{Finish, Message};

use super::runner::{ThoughtFailure, ThoughtRequest};
use super::{Conclusion, ThoughtRunner};
use qwen_engine::Stop;
use qwen_engine::agent::{Reply, StructuredAnswer, announce_limit, emit_message, stream_reply};
use qwen_engine::graph::{Next, RunContext};

/// The input of the reply.
pub(crate) struct Answering {
    /// The prompt for the model that writes it.
    pub prompt: String,
    /// The reply if a limit leaves no model call for it.
    pub best_so_far: String,
    /// The limit that was reached.
    pub limit: Option<Stop>,
}

/// Writes the reply. At a limit, the reply is the unedited best result so far, and the run ends with the
/// limit.
pub(crate) async fn answer(
    runner: &ThoughtRunner,
    answering: Answering,
    cx: &RunContext,
) -> (Conclusion, Next) {
    let (conclusion, next) = conclude(runner, answering, cx).await;
    (Conclusion { denials: runner.take_denials(), ..conclusion }, next)
}

async fn conclude(runner: &ThoughtRunner, answering: Answering, cx: &RunContext) -> (Conclusion, Next) {
    if let Some(limit) = answering.limit {
        announce_limit(&limit, cx).await;
        return (best_so_far(runner, &answering.best_so_far, cx).await, Next::Stop(limit));
    }
    if let Some(wanted) = &runner.turn.structured {
        return structured_answer(runner, wanted, answering, cx).await;
    }
    let messages = runner.messages(answering.prompt).into();
    let (reply, next) = stream_reply(&runner.turn, messages, cx).await;
    let conclusion = match reply {
        Some(Reply { text, message, finish }) => {
            Conclusion { reply: text, message, finish, denials: Vec::new() }
        }
        // This call itself reached the limit.
        None => best_so_far(runner, &answering.best_so_far, cx).await,
    };
    (conclusion, next)
}

fn replied(reply: Arc<str>, message: Option<Message>, finish: Finish) -> Conclusion {
    Conclusion { reply, message, finish: Some(finish), denials: Vec::new() }
}

/// The structured reply. The model writes it as a thought, which may need repair; only a valid answer becomes
/// the reply.
async fn structured_answer(
    runner: &ThoughtRunner,
    wanted: &StructuredAnswer,
    answering: Answering,
    cx: &RunContext,
) -> (Conclusion, Next) {
    let form = wanted.form.text();
    let prompt = format!(
        "{}\n## Form of the answer\nAnswer with nothing but JSON that fits this JSON Schema:\n{form}\n",
        answering.prompt
    );
    let mut problem = String::new();
    let mut attempt = 0;
    loop {
        let mended = if attempt == 0 {
            prompt.clone()
        } else {
            format!("{prompt}\n## What was wrong with your last answer\n{problem}\n")
        };
        let key = format!("answer/{attempt}");
        let ask = ThoughtRequest { key: &key, thought: "answer", prompt: mended, tools: false };
        let text = match runner.ask(ask, cx).await {
            Ok(text) => text,
            Err(failed) => {
                let stop = match failed {
                    ThoughtFailure::Run(stop) => stop,
                    ThoughtFailure::Thought(error) => Stop::failed(error),
                };
                announce_limit(&stop, cx).await;
                return (best_so_far(runner, &answering.best_so_far, cx).await, Next::Stop(stop));
            }
        };
        match (wanted.accept_text(&text), wanted.answer(), wanted.exhausted()) {
            (_, Some(answer), _) => {
                let message = emit_message(&runner.turn, answer.as_str().into(), cx).await;
                let reply: Arc<str> = answer.as_str().into();
                return (replied(reply, Some(message), Finish::Stop), Next::End);
            }
            (_, None, Some(stop)) => {
                return (replied(Arc::default(), None, Finish::Stop), Next::Stop(stop));
            }
            (verdict, None, None) => problem = verdict.err().unwrap_or_default(),
        }
        attempt += 1;
    }
}

async fn best_so_far(runner: &ThoughtRunner, text: &str, cx: &RunContext) -> Conclusion {
    let reply: Arc<str> = text.into();
    if text.is_empty() {
        return replied(reply, None, Finish::Stop);
    }
    let message = emit_message(&runner.turn, reply.clone(), cx).await;
    replied(reply, Some(message), Finish::Stop)
}
