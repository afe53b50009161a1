//! `docs/settings.md` lists every key of the schema with its type, its default and what it does.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value};

use crate::harness::qwen;

const BEGIN: &str =
    "<!-- The table is made by `QWEN_BLESS=1 cargo test -p qwen --test settings documented`. -->\n";
const END: &str = "<!-- The end of the table. -->\n";

fn printed(args: &[&str]) -> Value {
    let ended = qwen().args(args).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Walks the schema and writes a row for each key that holds a value.
struct Table {
    definitions: Map<String, Value>,
    defaults: Map<String, Value>,
    /// What was described already, and under which key.
    described: Vec<(String, String)>,
    keys: BTreeSet<String>,
    rows: String,
}

impl Table {
    fn add(&mut self, key: &str, schema: &Value) {
        let described = text(&schema["description"]);
        let (name, inner) = self.resolved(schema);
        if let Some(properties) = inner["properties"].as_object().filter(|_| inner["type"] == "object") {
            if let Some((_, first)) = self.described.iter().find(|(known, _)| Some(known) == name.as_ref()) {
                let what = format!("{described} Its keys are those of `{first}`.");
                return self.row(key, "object", &what);
            }
            self.described.extend(name.map(|name| (name, key.to_owned())));
            for (below, schema) in properties {
                let key = if key.is_empty() { below.clone() } else { format!("{key}.{below}") };
                self.add(&key, schema);
            }
            return;
        }
        if let Some(values) = inner.get("additionalProperties").filter(|values| values["$ref"].is_string()) {
            return self.add(&format!("{key}.NAME"), values);
        }
        if let Some(items) = inner.get("items").filter(|items| items["$ref"].is_string()) {
            self.row(key, "list of objects", &described);
            let (name, _) = self.resolved(items);
            if self.described.iter().all(|(known, _)| Some(known) != name.as_ref()) {
                self.add(&format!("{key}[]"), items);
            }
            return;
        }
        self.row(key, &kind(&inner), &described);
    }

    /// What a reference means, and its name.
    fn resolved(&self, schema: &Value) -> (Option<String>, Value) {
        let reference = schema["$ref"].as_str().or_else(|| schema["anyOf"][0]["$ref"].as_str());
        let Some(name) = reference.and_then(|reference| reference.rsplit('/').next()) else {
            return (None, schema.clone());
        };
        (Some(name.to_owned()), self.definitions[name].clone())
    }

    fn row(&mut self, key: &str, kind: &str, what: &str) {
        let default = match (self.defaults.get(key), self.defaults.get(&format!("{key}[0]"))) {
            (Some(setting), _) => format!("`{}`", setting["value"]),
            (None, Some(_)) => {
                let items = (0..).map_while(|n| self.defaults.get(&format!("{key}[{n}]")));
                format!("`{}`", Value::Array(items.map(|item| item["value"].clone()).collect()))
            }
            (None, None) => String::new(),
        };
        self.keys.insert(key.to_owned());
        writeln!(self.rows, "| `{key}` | {kind} | {default} | {} |", what.replace('|', "\\|")).unwrap();
    }
}

fn text(description: &Value) -> String {
    description.as_str().unwrap_or_default().replace('\n', " ")
}

fn kind(schema: &Value) -> String {
    let words = schema["enum"].as_array().cloned().unwrap_or_else(|| {
        let each = schema["oneOf"].as_array().into_iter().flatten();
        each.map(|one| one["const"].clone()).collect()
    });
    if !words.is_empty() {
        let words: Vec<String> =
            words.iter().filter(|word| !word.is_null()).map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let word = |kind: &str| {
        match kind {
            "string" => "text",
            "integer" => "whole number",
            "boolean" => "true or false",
            "array" => "list of texts",
            "object" => "object of texts",
            other => other,
        }
        .to_owned()
    };
    let words: Vec<String> = types.into_iter().filter(|kind| *kind != "null").map(word).collect();
    assert!(!words.is_empty(), "a type that has no word: {schema}");
    words.join(" or ")
}

fn table() -> Table {
    let schema = printed(&["schema", "settings"]);
    let defaults = printed(&["config", "--json"])["settings"].as_object().unwrap().clone();
    let definitions = schema["$defs"].as_object().unwrap().clone();
    let mut table =
        Table { definitions, defaults, described: Vec::new(), keys: BTreeSet::new(), rows: String::new() };
    table.rows.push_str("\n| key | type | default | what it does |\n|---|---|---|---|\n");
    table.add("", &schema);
    table.rows.push('\n');
    table
}

#[test]
fn the_documented_table_is_that_of_the_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let committed = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = committed.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    let rows = table().rows;
    if std::env::var_os("QWEN_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{rows}{END}{after}")).unwrap();
        return;
    }
    assert!(written == rows, "docs/settings.md has drifted; run this test with QWEN_BLESS=1 and commit it");
}

#[test]
fn every_default_that_is_shown_belongs_to_a_key_of_the_schema() {
    let table = table();
    for key in table.defaults.keys() {
        let key = key.split('[').next().unwrap();
        assert!(table.keys.contains(key), "{key} has a default and is no key");
    }
}
