//! The client's answers to questions, as answers of our control channel. Whatever was not offered is a no.

use qwen_events::Json;
use serde_json::{Value, json};

use super::permission::OptionId;

/// The answer for the worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The body of the control response.
    pub reply: Json,
    /// A rule to write to the user's settings.
    pub save_rule: Option<String>,
    /// The approval mode that the answer switches to.
    pub mode: Option<&'static str>,
    /// True if the client cancels the turn.
    pub cancels: bool,
}

impl Answer {
    fn new(reply: &Value) -> Self {
        Self { reply: Json::trusted(reply.to_string()), save_rule: None, mode: None, cancels: false }
    }

    /// A refusal with a reason.
    fn denial(message: &str) -> Self {
        Self::new(&json!({"behavior": "deny", "message": message}))
    }

    /// The end of the turn.
    fn cancelled() -> Self {
        let reply = json!({"behavior": "deny", "message": "The user cancelled the turn.", "interrupt": true});
        Self { cancels: true, ..Self::new(&reply) }
    }
}

fn with_rule(behavior: &str, rule: &str) -> Value {
    let update = json!({"type": "addRules", "behavior": behavior, "destination": "session", "rules": [rule]});
    json!({"behavior": behavior, "updatedPermissions": [update]})
}

/// What a client was asked, from which its answer is read.
#[derive(Debug, Clone, PartialEq)]
pub enum AskedQuestion {
    Permission {
        /// The options that the client was offered.
        offered: Vec<OptionId>,
        /// The rule in their names.
        rule: Option<String>,
    },
    /// A form about the questions in these arguments.
    Form { arguments: Value },
}

impl AskedQuestion {
    /// Reads a request to the client; none if it asks nothing.
    pub fn read(request: &Value) -> Option<Self> {
        let params = request.get("params")?;
        let meta = params.pointer("/_meta/qwen");
        match request.get("method")?.as_str()? {
            "session/request_permission" => {
                let options = params.get("options")?.as_array()?;
                let offered = options.iter().filter_map(|option| option.get("optionId")?.as_str());
                let rule = meta.and_then(|meta| meta.get("rule")?.as_str()).map(str::to_owned);
                Some(Self::Permission { offered: offered.filter_map(OptionId::parse).collect(), rule })
            }
            "elicitation/create" => Some(Self::Form { arguments: meta?.get("arguments")?.clone() }),
            _ => None,
        }
    }

    /// Reads the client's answer; none means an error.
    pub fn answer(&self, result: Option<&Value>) -> Answer {
        match (self, result) {
            (_, None) => Answer::denial("The client could not ask the user, which means no."),
            (Self::Permission { offered, rule }, Some(result)) => {
                permission_answer(offered, rule.as_deref(), result)
            }
            (Self::Form { arguments }, Some(result)) => elicitation_answer(arguments, result),
        }
    }
}

/// Reads the result of a permission request that offered the options `offered` and named `rule` in them.
pub(crate) fn permission_answer(offered: &[OptionId], rule: Option<&str>, result: &Value) -> Answer {
    let outcome = result.get("outcome").unwrap_or(&Value::Null);
    match outcome.get("outcome").and_then(Value::as_str) {
        Some("cancelled") => return Answer::cancelled(),
        Some("selected") => {}
        _ => return Answer::denial("The client's answer was not valid, so the call is denied."),
    }
    let selected = outcome.get("optionId").and_then(Value::as_str).and_then(OptionId::parse);
    let Some(selected) = selected.filter(|option| offered.contains(option)) else {
        return Answer::denial("The client chose an option that was not offered, which means no.");
    };
    match (selected, rule) {
        (OptionId::AllowOnce, _) => Answer::new(&json!({"behavior": "allow"})),
        (OptionId::AutoEdit, _) => {
            let mode = OptionId::AutoEdit.name();
            let update = json!({"type": "setMode", "mode": mode, "destination": "session"});
            let reply = json!({"behavior": "allow", "updatedPermissions": [update]});
            Answer { mode: Some(mode), ..Answer::new(&reply) }
        }
        (OptionId::AllowSession, Some(rule)) => Answer::new(&with_rule("allow", rule)),
        (OptionId::AllowAlways, Some(rule)) => {
            Answer { save_rule: Some(rule.to_owned()), ..Answer::new(&with_rule("allow", rule)) }
        }
        (OptionId::RejectSession, Some(rule)) => {
            let mut reply = with_rule("deny", rule);
            reply["message"] = "The user rejected the call, and calls like it for this session.".into();
            Answer::new(&reply)
        }
        (OptionId::RejectOnce, _) => Answer::denial("The user rejected the call."),
        (OptionId::AllowSession | OptionId::AllowAlways | OptionId::RejectSession, None) => {
            Answer::denial("The client chose an option that was not offered, which means no.")
        }
    }
}

/// Reads the result of a form about the questions of a call with these arguments.
fn elicitation_answer(arguments: &Value, result: &Value) -> Answer {
    match result.get("action").and_then(Value::as_str) {
        Some("accept") => {}
        Some("decline") => {
            return Answer::denial("The user declined to answer. Continue with your best judgement.");
        }
        _ => return Answer::denial("The user closed the question without an answer."),
    }
    let content = result.get("content").and_then(Value::as_object);
    let questions = arguments.get("questions").and_then(Value::as_array);
    let mut answers = serde_json::Map::new();
    for (at, item) in questions.into_iter().flatten().enumerate() {
        let given = content.and_then(|content| content.get(&format!("answer_{}", at + 1)));
        let given = given.filter(|given| is_answer(given));
        if let (Some(question), Some(given)) = (item.get("question").and_then(Value::as_str), given) {
            answers.insert(question.to_owned(), given.clone());
        }
    }
    if answers.is_empty() {
        return Answer::denial("The user gave no answer. Continue with your best judgement.");
    }
    let mut input = arguments.clone();
    input["answers"] = Value::Object(answers);
    Answer::new(&json!({"behavior": "allow", "updatedInput": input}))
}

/// True for what a form can return: a text, or a list of texts.
fn is_answer(given: &Value) -> bool {
    match given {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty() && items.iter().all(Value::is_string),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(option: &str) -> Value {
        json!({"outcome": {"outcome": "selected", "optionId": option}})
    }

    fn behavior(answer: &Answer) -> String {
        let reply: Value = serde_json::from_str(answer.reply.as_str()).unwrap();
        reply["behavior"].as_str().unwrap().to_owned()
    }

    #[test]
    fn an_option_that_was_not_offered_is_a_no() {
        let offered = [OptionId::AllowOnce, OptionId::RejectOnce];
        for option in ["allow_always", "allow_session", "auto-edit", "reject_session", "yes", ""] {
            let answer = permission_answer(&offered, Some("Bash(ls)"), &selected(option));
            assert_eq!(behavior(&answer), "deny", "{option}");
            assert_eq!(answer.save_rule, None);
        }
        let always = [OptionId::AllowAlways];
        assert_eq!(behavior(&permission_answer(&always, None, &selected("allow_always"))), "deny");
    }

    #[test]
    fn anything_but_a_selection_is_a_no() {
        let offered = [OptionId::AllowOnce];
        for result in [
            json!(null),
            json!({}),
            json!([]),
            json!({"outcome": "selected"}),
            json!({"outcome": {"outcome": "selected"}}),
            json!({"outcome": {"outcome": "selected", "optionId": 1}}),
            json!({"outcome": {"outcome": "allowed", "optionId": "allow_once"}}),
            json!({"outcome": {"optionId": "allow_once"}}),
            json!({"optionId": "allow_once"}),
        ] {
            assert_eq!(behavior(&permission_answer(&offered, None, &result)), "deny", "{result}");
        }
        assert_eq!(behavior(&permission_answer(&offered, None, &selected("allow_once"))), "allow");
    }

    #[test]
    fn a_cancelled_question_ends_the_turn() {
        let answer = permission_answer(&[], None, &json!({"outcome": {"outcome": "cancelled"}}));
        assert!(answer.cancels && answer.reply.as_str().contains("\"interrupt\":true"));
    }

    #[test]
    fn the_answers_of_a_form_are_named_by_their_questions() {
        let arguments = json!({"questions": [{"question": "Which?"}, {"question": "Why?"}]});
        let accepted = json!({"action": "accept", "content": {"answer_1": "this", "answer_9": "x"}});
        let answer = elicitation_answer(&arguments, &accepted);
        let reply: Value = serde_json::from_str(answer.reply.as_str()).unwrap();
        assert_eq!(reply["updatedInput"]["answers"], json!({"Which?": "this"}));
        for wrong in [json!(null), json!(5), json!({}), json!([]), json!(""), json!([1])] {
            let accepted = json!({"action": "accept", "content": {"answer_1": wrong}});
            assert_eq!(behavior(&elicitation_answer(&arguments, &accepted)), "deny", "{wrong}");
        }
        for action in ["decline", "cancel", "explode"] {
            assert_eq!(behavior(&elicitation_answer(&arguments, &json!({"action": action}))), "deny");
        }
    }
}
