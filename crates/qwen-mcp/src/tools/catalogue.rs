//! The tools of a server as offered to the model: with unambiguous names and no hidden characters in their
//! descriptions.

use std::collections::HashSet;
use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};

use qwen_events::{Json, ToolSpec};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ServerConfig;
use crate::config::is_name_byte;
use crate::tools::mirrored::{Mirrored, mirrored};
use crate::tools::visible::{reveal, visible};

/// The longest description of a tool, in characters.
const LONGEST_DESCRIPTION: usize = 4_096;
/// The longest schema of a tool's arguments, in bytes.
const LONGEST_SCHEMA: usize = 64 * 1024;
/// Longest full tool name, in bytes.
const LONGEST_NAME: usize = 128;
/// Longest display name, in characters.
const LONGEST_TITLE: usize = 80;
/// The most tools that one server may offer.
const MOST_TOOLS: usize = 512;
/// Most bytes of all tool definitions together. Every model call includes them.
const MOST_TEXT: usize = 512 * 1024;
/// The longest annotations of a tool, in bytes.
const LONGEST_ANNOTATIONS: usize = 4 * 1024;

/// A hash of a tool's definition. If it differs, the tool has changed. The hash is valid only in this
/// process, so a server cannot compute a description with the same hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    fn compute(parts: &[&str]) -> Self {
        static KEYS: OnceLock<RandomState> = OnceLock::new();
        Self(KEYS.get_or_init(RandomState::new).hash_one(parts))
    }
}

/// One tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    /// Its name on the server.
    pub name: Arc<str>,
    /// The name that is shown to users.
    pub title: Arc<str>,
    /// The specification for the model.
    pub spec: ToolSpec,
    /// The server's annotations. They grant nothing.
    pub annotations: Option<Json>,
    /// Covers all fields above.
    pub fingerprint: Fingerprint,
    /// Arguments that calls repeat in headers.
    pub mirrored: Arc<[Mirrored]>,
}

/// All tools of a server.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    pub tools: Vec<Definition>,
    /// Sentences about omitted or suspicious tools.
    pub warnings: Vec<Arc<str>>,
}

/// A tool as the server describes it.
#[derive(Deserialize)]
pub(crate) struct Listed {
    name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(rename = "inputSchema", default)]
    input_schema: Option<Box<RawValue>>,
    #[serde(default)]
    annotations: Option<Value>,
}

impl Catalogue {
    /// Builds the catalogue from a server's list. Entries are checked one by one; an invalid one is dropped
    /// and the others stay. With `has_headers` calls repeat arguments in headers where the schema asks for
    /// it.
    pub(crate) fn build(
        server: &str,
        config: &ServerConfig,
        listed: Vec<Box<RawValue>>,
        has_headers: bool,
    ) -> Self {
        let mut catalogue = Self::default();
        let mut names = HashSet::new();
        let mut text = 0;
        for one in listed {
            if catalogue.tools.len() == MOST_TOOLS {
                catalogue.warn(format!("It offers more than {MOST_TOOLS} tools; the rest is left out."));
                break;
            }
            let Ok(listed) = serde_json::from_str::<Listed>(one.get()) else {
                catalogue.warn("A tool without a usable name is left out.".to_owned());
                continue;
            };
            let shown = visible(&listed.name, LONGEST_NAME).text;
            if !config.permits(&listed.name) {
                continue;
            }
            if listed.name.is_empty() || !listed.name.bytes().all(is_name_byte) {
                catalogue.warn(format!(
                    "The tool `{shown}` is left out: its name may contain only letters, digits, `_`, `.` and `-`."
                ));
                continue;
            }
            let full = format!("mcp__{server}__{}", listed.name);
            if full.len() > LONGEST_NAME {
                catalogue.warn(format!("The tool `{shown}` is left out: its name is too long."));
                continue;
            }
            if !names.insert(listed.name.clone()) {
                catalogue.warn(format!("A second tool called `{shown}` is left out."));
                continue;
            }
            match define(listed, &full, has_headers) {
                Ok((definition, hidden)) => {
                    text += definition.spec.description.len() + definition.spec.parameters.as_str().len();
                    if text > MOST_TEXT {
                        catalogue.warn(
                            "The descriptions of its tools are too long in total; the remaining tools are left out."
                                .to_owned(),
                        );
                        break;
                    }
                    if hidden > 0 {
                        catalogue.warn(format!(
                            "The description of the tool `{shown}` contains {hidden} hidden characters, which are now shown."
                        ));
                    }
                    if let Some(problem) = unenforced(&definition.spec) {
                        catalogue.warn(format!(
                            "The arguments of the tool `{shown}` are checked only in part, because of its schema: {problem}."
                        ));
                    }
                    catalogue.tools.push(definition);
                }
                Err(problem) => catalogue.warn(format!("The tool `{shown}` is left out: {problem}.")),
            }
        }
        catalogue
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Definition> {
        self.tools.iter().find(|tool| &*tool.name == name)
    }

    fn warn(&mut self, warning: String) {
        // Bound the number of warnings.
        if self.warnings.len() < 20 {
            self.warnings.push(warning.into());
        }
    }
}

/// The first schema keyword that calls are not validated against.
fn unenforced(spec: &ToolSpec) -> Option<String> {
    match qwen_schema::Schema::parse_supported(spec.parameters.as_str()) {
        Ok((_, unsupported)) => unsupported.first().map(ToString::to_string),
        Err(error) => Some(error.to_string()),
    }
}

/// Converts a listed tool into a definition. Also returns the number of hidden characters it contained.
fn define(listed: Listed, full: &str, has_headers: bool) -> Result<(Definition, usize), &'static str> {
    let (schema, hidden_in_schema) = schema(listed.input_schema.as_deref())?;
    let mirrored = if has_headers { mirrored_in(&schema)? } else { Vec::new() };
    let mut description = visible(listed.description.as_deref().unwrap_or_default(), LONGEST_DESCRIPTION);
    if description.cut {
        description.text.push_str(" […]");
    }
    let title = visible(listed.title.as_deref().unwrap_or(&listed.name), LONGEST_TITLE);
    let hidden = hidden_in_schema + description.hidden + title.hidden;
    if hidden > 0 {
        // Writing to a string cannot fail.
        let _ = write!(
            description.text,
            "\n[{hidden} characters that cannot be seen were found in this description; they are shown as \\u{{…}}.]"
        );
    }
    let annotations = listed.annotations.filter(Value::is_object).map(|mut annotations| {
        reveal(&mut annotations);
        Json::trusted(annotations.to_string())
    });
    let annotations = annotations.filter(|annotations| annotations.as_str().len() <= LONGEST_ANNOTATIONS);
    let fingerprint = Fingerprint::compute(&[
        &title.text,
        &description.text,
        // Hash the original text, including parts that were cut or escaped.
        listed.description.as_deref().unwrap_or_default(),
        &schema,
        annotations.as_ref().map_or("", Json::as_str),
    ]);
    let definition = Definition {
        name: listed.name.as_str().into(),
        title: title.text.into(),
        spec: ToolSpec {
            name: full.into(),
            description: description.text.into(),
            parameters: Json::trusted(schema),
        },
        annotations,
        fingerprint,
        mirrored: mirrored.into(),
    };
    Ok((definition, hidden))
}

fn mirrored_in(schema: &str) -> Result<Vec<Mirrored>, &'static str> {
    serde_json::from_str(schema).map_or_else(|_| Ok(Vec::new()), |schema| mirrored(&schema))
}

/// Returns the schema on one line and the number of hidden characters it contained. Keeps the server's text
/// where possible, because the order of fields carries meaning.
fn schema(given: Option<&RawValue>) -> Result<(String, usize), &'static str> {
    let text = given.map_or(r#"{"type":"object"}"#, RawValue::get);
    if text.len() > LONGEST_SCHEMA {
        return Err("the schema of its arguments is too long");
    }
    let mut value: Value =
        serde_json::from_str(text).map_err(|_| "the schema of its arguments cannot be read")?;
    if !value.is_object() {
        return Err("the schema of its arguments is not an object");
    }
    let hidden = reveal(&mut value);
    if value.get("type").is_none() {
        value["type"] = "object".into();
    } else if hidden == 0 && !text.contains(['\n', '\r']) {
        return Ok((text.to_owned(), 0));
    }
    Ok((value.to_string(), hidden))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Transport;

    fn catalogue(tools: Value) -> Catalogue {
        let listed: Vec<Box<RawValue>> = serde_json::from_value(tools).unwrap();
        Catalogue::build("s", &ServerConfig::new(Transport::Host), listed, false)
    }

    #[test]
    fn a_tool_is_offered_under_the_name_of_its_server() {
        let listed: Vec<Box<RawValue>> = serde_json::from_str(
            r#"[{"name":"read","title":"Read","description":"d","inputSchema":{"type":"object","properties":{"z":{},"a":{}}},"annotations":{"readOnlyHint":true}}]"#,
        )
        .unwrap();
        let made = Catalogue::build("s", &ServerConfig::new(Transport::Host), listed, false);
        let tool = made.get("read").unwrap();
        assert_eq!((&*tool.spec.name, &*tool.spec.description, &*tool.title), ("mcp__s__read", "d", "Read"));
        assert_eq!(tool.spec.parameters.as_str(), r#"{"type":"object","properties":{"z":{},"a":{}}}"#);
        assert_eq!(tool.annotations.as_ref().unwrap().as_str(), r#"{"readOnlyHint":true}"#);
        assert!(made.warnings.is_empty());
    }

    #[test]
    fn an_invalid_tool_is_skipped_and_the_others_are_offered() {
        let made = catalogue(json!([
            {"name": "bad name"}, {"name": "\u{200b}x"}, {"name": ""}, {"name": 7}, "invalid_line", {},
            {"name": "x".repeat(130)}, {"name": "list", "inputSchema": []},
            {"name": "huge", "inputSchema": {"type": "object", "description": "x".repeat(70_000)}},
            {"name": "good.one-2"}, {"name": "good.one-2", "description": "another"},
        ]));
        let names: Vec<&str> = made.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["good.one-2"]);
        assert_eq!(&*made.tools[0].spec.description, "");
        assert_eq!(made.tools[0].spec.parameters.as_str(), r#"{"type":"object"}"#);
        assert_eq!(made.warnings.len(), 10);
        assert!(made.warnings.iter().all(|warning| !warning.contains('\u{200b}')), "{:?}", made.warnings);
    }

    #[test]
    fn hidden_characters_are_shown_and_flagged_wherever_they_are() {
        for tool in [
            json!({"name": "t", "description": "Adds.\u{e0049}\u{e0067}"}),
            json!({"name": "t", "title": "\u{202e}x\u{200b}"}),
            json!({"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"description": "\u{200b}\u{1b}[8m"}}}}),
        ] {
            let made = catalogue(json!([tool]));
            let spec = &made.tools[0].spec;
            let all = format!("{}{}{}", spec.description, spec.parameters.as_str(), made.tools[0].title);
            assert!(!all.chars().any(qwen_events::is_hidden), "{all}");
            assert!(spec.description.contains("2 characters that cannot be seen"), "{all}");
            assert!(made.warnings[0].contains("2 hidden characters"), "{:?}", made.warnings);
        }
    }

    #[test]
    fn any_change_of_what_a_tool_says_changes_its_fingerprint() {
        let fingerprint = |tool: Value| catalogue(json!([tool])).tools[0].fingerprint;
        let base = json!({"name": "t", "title": "T", "description": "d", "inputSchema": {"type": "object"}});
        assert_eq!(fingerprint(base.clone()), fingerprint(base.clone()));
        for (field, value) in [
            ("title", json!("U")),
            ("description", json!("D")),
            ("description", json!("d\u{200b}")),
            ("inputSchema", json!({"type": "object", "properties": {}})),
            ("annotations", json!({"readOnlyHint": true})),
        ] {
            let mut changed = base.clone();
            changed[field] = value;
            assert_ne!(fingerprint(changed), fingerprint(base.clone()), "{field}");
        }
        let long = |end: &str| json!({"name": "t", "description": format!("{}{end}", "x".repeat(5_000))});
        assert_ne!(fingerprint(long("a")), fingerprint(long("b")));
    }

    #[test]
    fn long_descriptions_are_cut() {
        let made = catalogue(json!([{"name": "t", "description": "x".repeat(10_000)}]));
        let description = &made.tools[0].spec.description;
        assert!(description.ends_with(" […]") && description.chars().count() < 4_200);
    }

    #[test]
    fn tools_that_say_too_much_are_left_out() {
        let one = |n: usize| json!({"name": format!("t{n}"), "inputSchema": {"type": "object", "x": "y".repeat(60_000)}});
        let made = catalogue((0..20).map(one).collect());
        assert_eq!((made.tools.len(), made.warnings.len()), (8, 1));
        let made = catalogue(json!([{"name": "t", "annotations": {"title": "x".repeat(5_000)}}]));
        assert_eq!(made.tools[0].annotations, None);
    }

    #[test]
    fn only_wanted_tools_are_offered() {
        let mut config = ServerConfig::new(Transport::Host);
        config.exclude_tools = vec!["b".to_owned()];
        let listed = serde_json::from_value(json!([{"name": "a"}, {"name": "b"}])).unwrap();
        let made = Catalogue::build("s", &config, listed, false);
        assert!(made.get("a").is_some() && made.get("b").is_none() && made.warnings.is_empty());
    }
}
