//! Questions of the model: options to choose from, or free text.

use qwen_events::ToolCall;
use serde_json::{Map, Value};

use crate::editor::Editor;
use crate::input::{KeyAction, KeyCode, TerminalInput};
use crate::text::clean_line;

/// One question of the model.
#[derive(Debug)]
pub(super) struct FormQuestion {
    /// The question as the model wrote it; it is the key of the answer.
    question: String,
    pub(super) options: Vec<(String, String)>,
    pub(super) several: bool,
}

/// The questions of one call, answered one after the other.
#[derive(Debug)]
pub(super) struct Form {
    asked: Vec<FormQuestion>,
    at: usize,
    /// The option under the cursor; the last one is "something else".
    pub(super) cursor: usize,
    pub(super) chosen: Vec<usize>,
    /// The free text, if no option fits.
    pub(super) words: Editor,
    answers: Map<String, Value>,
}

impl Form {
    /// The form of a call that asks the user something.
    pub(super) fn read(call: &ToolCall) -> Option<Self> {
        if !matches!(&*call.name, "ask_user_question" | "AskUserQuestion") {
            return None;
        }
        let arguments: Value = serde_json::from_str(call.arguments.as_str()).ok()?;
        let text =
            |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let asked = arguments.get("questions")?.as_array()?.iter().map(|item| FormQuestion {
            question: text(item, "question"),
            options: item
                .get("options")
                .and_then(Value::as_array)
                .map(|options| options.iter().map(|o| (text(o, "label"), text(o, "description"))).collect())
                .unwrap_or_default(),
            several: item.get("multiSelect").and_then(Value::as_bool).unwrap_or_default(),
        });
        let asked: Vec<FormQuestion> = asked.collect();
        (!asked.is_empty()).then(|| Self {
            asked,
            at: 0,
            cursor: 0,
            chosen: Vec::new(),
            words: Editor::default(),
            answers: Map::new(),
        })
    }

    /// The current question, and its position among all.
    pub(super) fn current(&self) -> (&FormQuestion, String) {
        let asked = &self.asked[self.at.min(self.asked.len() - 1)];
        let place = if self.asked.len() > 1 {
            format!("{}/{} ", self.at + 1, self.asked.len())
        } else {
            String::new()
        };
        (asked, format!("{place}{}", clean_line(&asked.question)))
    }

    /// The position of the current question among all.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// True while free text is being written.
    pub(super) fn is_writing(&self) -> bool {
        self.cursor >= self.current().0.options.len()
    }

    /// Processes an input; returns the answers once the last question is answered.
    pub(super) fn input(&mut self, input: &TerminalInput, action: Option<KeyAction>) -> Option<Value> {
        let asked = &self.asked[self.at];
        let count = asked.options.len();
        match (input, action) {
            (_, Some(KeyAction::Up)) => self.cursor = self.cursor.checked_sub(1).unwrap_or(count),
            (_, Some(KeyAction::Down | KeyAction::Complete)) => self.cursor = (self.cursor + 1) % (count + 1),
            (_, Some(KeyAction::Submit)) => return self.submit(),
            (TerminalInput::Key(key), _) if !self.is_writing() && !key.ctrl && !key.alt => match key.code {
                KeyCode::Char(c @ '1'..='9') => {
                    let number = c as usize - '1' as usize;
                    if number < count {
                        self.cursor = number;
                        if asked.several {
                            self.toggle();
                        } else {
                            return self.submit();
                        }
                    } else if number == count {
                        self.cursor = count;
                    }
                }
                KeyCode::Char(' ') if asked.several => self.toggle(),
                _ => {}
            },
            _ if self.is_writing() => crate::app::edit(&mut self.words, input, action),
            _ => {}
        }
        None
    }

    /// The current question with its numbered options, as lines.
    pub(super) fn numbered(&self) -> Vec<String> {
        let (asked, title) = self.current();
        let options = asked.options.iter().enumerate();
        let option = |(n, (label, about)): (usize, &(String, String))| format!("{}. {label} {about}", n + 1);
        let mut lines = vec![title];
        lines.extend(options.map(option));
        let how = if asked.several {
            "Enter numbers, or your own answer."
        } else {
            "Enter a number, or your own answer."
        };
        lines.push(how.to_owned());
        lines
    }

    /// Answers the current question with a line; returns the answers once the last one is answered.
    pub(super) fn line(&mut self, text: &str) -> Option<Value> {
        let count = self.asked[self.at].options.len();
        let numbers: Option<Vec<usize>> = text
            .split([' ', ','])
            .filter(|word| !word.is_empty())
            .map(|word| {
                word.parse().ok().filter(|number| (1..=count).contains(number)).map(|number| number - 1)
            })
            .collect();
        match numbers.filter(|numbers| !numbers.is_empty()) {
            Some(numbers) => {
                self.cursor = numbers[0];
                self.chosen = numbers;
            }
            None => {
                self.cursor = count;
                self.chosen.clear();
                self.words.set(text);
            }
        }
        self.submit()
    }

    fn toggle(&mut self) {
        match self.chosen.iter().position(|chosen| *chosen == self.cursor) {
            Some(at) => {
                self.chosen.remove(at);
            }
            None => self.chosen.push(self.cursor),
        }
    }

    fn submit(&mut self) -> Option<Value> {
        let asked = &self.asked[self.at];
        let words = self.words.text();
        let words = Some(words.trim()).filter(|words| self.is_writing() && !words.is_empty());
        let mut chosen = self.chosen.clone();
        if chosen.is_empty() && !self.is_writing() {
            chosen.push(self.cursor);
        }
        chosen.sort_unstable();
        // The user's own words join the marked options.
        let labels = chosen.iter().map(|at| asked.options[*at].0.as_str());
        let answer: Vec<&str> = labels.chain(words).collect();
        if answer.is_empty() {
            return None;
        }
        self.answers.insert(asked.question.clone(), answer.join(", ").into());
        self.at += 1;
        self.cursor = 0;
        self.chosen.clear();
        self.words.take();
        (self.at == self.asked.len()).then(|| Value::Object(std::mem::take(&mut self.answers)))
    }
}
