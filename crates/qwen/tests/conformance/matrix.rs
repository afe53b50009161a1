//! For each type of line, every field missing, null, of the wrong type, absurdly large: one error each, or
//! the one answer that a good line has, and the worker goes on.

use serde_json::{Value, json};

use crate::harness::{CLAUDE, Host, ends_turn, is_error};
use crate::templates::{Answer, Need, Template, controls, prompts, requests};

/// Stands where raw text is put, which no JSON value could hold.
const HOLE: &str = "@@hole@@";

/// What comes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Error,
    Good,
}

/// What must come of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Must {
    Err,
    BeGood,
    BeEither,
}

/// What is put in place of a field: the text, and the first letter of its kind.
fn replacements() -> Vec<(String, char)> {
    let huge = "x".repeat(256 * 1024);
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    vec![
        ("true".into(), 'b'),
        ("7".into(), 'n'),
        ("-1.5".into(), 'n'),
        ("1e400".into(), 'n'),
        ("123456789012345678901234567890".into(), 'n'),
        ("\"x\"".into(), 's'),
        ("\"\"".into(), 's'),
        (format!("\"{huge}\""), 's'),
        ("[]".into(), 'a'),
        ("[[]]".into(), 'a'),
        (nested(100), 'a'),
        ("{}".into(), 'o'),
        ("{\"unknown\":1}".into(), 'o'),
        (nested(10_000), '!'),
        ("\"\\ud800\"".into(), '!'),
        ("{\"a\":1,\"a\":2}".into(), '!'),
    ]
}

/// Every bad line that a template gives, and what must come of it.
fn cases(template: &Template) -> Vec<(String, Must)> {
    let mut cases = Vec::new();
    let number = |cases: &Vec<(String, Must)>| cases.len() + 1000 * usize::from(template.only_bad);
    for (path, need, kinds) in &template.fields {
        let skipped = template.skip.contains(&path.as_str());
        if !skipped {
            let mut without = (template.line)(number(&cases));
            remove(&mut without, path);
            let must = if *need == Need::Required { Must::Err } else { Must::BeEither };
            cases.push((without.to_string(), must));
        }
        for (text, kind) in replacements().into_iter().chain([("null".to_owned(), '0')]) {
            let must = match (kind, need) {
                ('!', _) => Must::Err,
                (_, Need::Ignored) => Must::BeGood,
                ('0', Need::Required | Need::Item) => Must::Err,
                ('0', Need::Optional) if skipped => continue,
                ('0', Need::Optional) => Must::BeGood,
                (kind, _) if !kinds.contains(kind) => Must::Err,
                _ => Must::BeEither,
            };
            let mut line = (template.line)(number(&cases));
            *at(&mut line, path) = HOLE.into();
            cases.push((line.to_string().replacen(&format!("\"{HOLE}\""), &text, 1), must));
        }
    }
    if template.refused {
        for (_, must) in &mut cases {
            *must = Must::Err;
        }
    }
    cases.retain(|(_, must)| !template.only_bad || *must == Must::Err);
    cases
}

/// The steps of a path such as `input.parts[0].text`.
fn steps(path: &str) -> Vec<String> {
    path.replace('[', ".").replace(']', "").split('.').map(str::to_owned).collect()
}

fn at<'a>(line: &'a mut Value, path: &str) -> &'a mut Value {
    steps(path).iter().fold(line, |value, step| match step.parse::<usize>() {
        Ok(place) => &mut value[place],
        Err(_) => &mut value[step.as_str()],
    })
}

fn remove(line: &mut Value, path: &str) {
    let mut steps = steps(path);
    let last = steps.pop().unwrap();
    let parent = if steps.is_empty() { line } else { at(line, &steps.join(".")) };
    match (parent, last.parse::<usize>()) {
        (Value::Array(items), Ok(place)) => drop(items.remove(place)),
        (Value::Object(fields), _) => drop(fields.remove(&last).unwrap()),
        (other, _) => panic!("{path} is not in a list or an object but in {other}"),
    }
}

/// What a line of output says about a line of input.
fn came(line: &Value) -> Option<Came> {
    if is_error(line) {
        return Some(Came::Error);
    }
    match line["type"].as_str() {
        Some("control_response") => {
            let id = line["request_id"].as_str().or(line["response"]["request_id"].as_str());
            let fence = id.is_some_and(|id| id.starts_with("fence-"));
            let failed = line["response"]["subtype"] == "error";
            (!fence).then_some(if failed { Came::Error } else { Came::Good })
        }
        Some("result/command" | "result/command_hint" | "result/cancel" | "result/heartbeat") => {
            Some(Came::Good)
        }
        _ => ends_turn(line).then_some(Came::Good),
    }
}

/// Drives one worker through lines.
struct Driver {
    host: Host,
    fences: usize,
}

impl Driver {
    /// The next line; questions of the worker are answered with an error, so that none keeps it waiting.
    #[track_caller]
    fn line(&mut self) -> Value {
        let line = self.host.run.json();
        if line["type"] == "control_request" {
            let error = json!({"subtype": "error", "error": {"message": "not here", "retryable": false}});
            let id = line["request_id"].clone();
            self.host.send(json!({"type": "control_response", "request_id": id, "response": error}));
        }
        line
    }

    /// Reads all that comes of what was said so far, as far as it comes at once.
    #[track_caller]
    fn settle(&mut self, all: &mut Vec<Came>) {
        self.fences += 1;
        let id = format!("fence-{}", self.fences);
        self.host
            .send(json!({"type": "control_request", "request_id": id, "subtype": "get_available_models"}));
        loop {
            let line = self.line();
            all.extend(came(&line));
            if line["request_id"] == *id && line["type"] == "control_response" {
                return;
            }
        }
    }

    /// What comes of one line.
    #[track_caller]
    fn try_line(&mut self, line: &str, answer: Answer) -> Vec<Came> {
        let mut all = Vec::new();
        self.host.send(line);
        self.settle(&mut all);
        while all.is_empty() && answer != Answer::Silence {
            let line = self.line();
            all.extend(came(&line));
        }
        self.settle(&mut all);
        all
    }
}

#[track_caller]
fn holds(templates: &[Template], format: &str) {
    for template in templates {
        let mock = crate::harness::echo();
        let mut driver = Driver { host: Host::with(&mock, format), fences: 0 };
        driver.host.send(crate::harness::chat("first", "hold this session"));
        driver.host.turn();
        for (line, must) in cases(template) {
            let came = driver.try_line(&line, template.answer);
            let shown: String = line.chars().take(400).collect();
            let fits = match (&came[..], must) {
                ([Came::Error], Must::Err | Must::BeEither)
                | ([Came::Good], Must::BeGood | Must::BeEither) => true,
                ([], Must::BeGood | Must::BeEither) => template.answer == Answer::Silence,
                _ => false,
            };
            assert!(fits, "{} must {must:?} and came to {came:?}: {shown}", template.name);
        }
        let last = driver.try_line(&crate::harness::openai("still there?").to_string(), Answer::Turn);
        assert_eq!(last, [Came::Good], "{}", template.name);
        driver.host.leave();
    }
}

#[test]
fn every_field_of_every_prompt_may_be_bad_at_the_cost_of_one_error() {
    for format in ["stream-json", "stream-chunk-json", CLAUDE] {
        holds(&prompts(), format);
    }
}

#[test]
fn every_field_of_every_request_may_be_bad_at_the_cost_of_one_error() {
    for format in ["stream-json", CLAUDE] {
        holds(&requests(), format);
    }
}

#[test]
fn every_field_of_every_control_request_may_be_bad_at_the_cost_of_one_error() {
    for format in ["stream-json", CLAUDE] {
        holds(&controls(), format);
    }
}
