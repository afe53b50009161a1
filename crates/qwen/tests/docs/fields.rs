//! The field tables of the protocol reference are generated from `schemas/`.
//!
//! `QWEN_BLESS=1 cargo test -p qwen --test docs fields` writes them between the markers of each page.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use serde_json::{Map, Value};

use crate::page::root;

const BEGIN: &str = "<!-- fields: ";
const END: &str = "<!-- end of fields -->";

#[test]
fn the_field_tables_of_the_protocol_reference_match_the_schemas() {
    for entry in fs::read_dir(root().join("docs/protocol")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let generated = regenerated(&text);
        if std::env::var_os("QWEN_BLESS").is_some() {
            fs::write(&path, &generated).unwrap();
        }
        assert!(
            text == generated || std::env::var_os("QWEN_BLESS").is_some(),
            "{}: run QWEN_BLESS=1 cargo test -p qwen --test docs fields",
            path.display()
        );
    }
}

/// The page with the tables behind each marker made anew. A definition that an earlier marker of the page has
/// shown in the same form is left out.
fn regenerated(page: &str) -> String {
    let mut shown: BTreeMap<String, Value> = BTreeMap::new();
    let mut generated = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        writeln!(generated, "{line}").unwrap();
        let Some(name) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        for skipped in lines.by_ref() {
            if skipped == END {
                break;
            }
        }
        let schema = fs::read_to_string(root().join("schemas").join(name)).unwrap();
        let schema: Value = serde_json::from_str(&schema).unwrap();
        generated.push('\n');
        tables(&schema, &mut shown, &mut generated);
        writeln!(generated, "{END}").unwrap();
    }
    generated
}

fn tables(schema: &Value, shown: &mut BTreeMap<String, Value>, page: &mut String) {
    if schema["properties"].is_object() {
        let title = schema["title"].as_str().unwrap_or("Line");
        table(title, schema, page);
    }
    let Some(definitions) = schema["$defs"].as_object() else { return };
    for (name, definition) in definitions {
        if shown.get(name) == Some(definition) {
            continue;
        }
        shown.insert(name.clone(), definition.clone());
        if definition["properties"].is_object() {
            table(name, definition, page);
        }
        for variant in variants(definition) {
            if variant["properties"].is_object() {
                table(&format!("{name}{}", discriminator(variant)), variant, page);
            }
        }
    }
}

fn variants(definition: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf"].into_iter().filter_map(|key| definition[key].as_array()).flatten()
}

/// What tells a variant from its siblings: the constant of a property, or its only property.
fn discriminator(variant: &Value) -> String {
    let properties = variant["properties"].as_object().into_iter().flatten();
    let constants = properties.filter_map(|(_, property)| property["const"].as_str());
    let words: Vec<&str> = constants.collect();
    if !words.is_empty() {
        return format!(" `{}`", words.join("` `"));
    }
    match variant["properties"].as_object() {
        Some(properties) if properties.len() == 1 => format!(" `{}`", properties.keys().next().unwrap()),
        _ => String::new(),
    }
}

fn table(name: &str, object: &Value, page: &mut String) {
    writeln!(page, "**{name}**: {}\n", described(object)).unwrap();
    let none = Map::new();
    let properties = object["properties"].as_object().unwrap_or(&none);
    if properties.is_empty() {
        return;
    }
    let required: Vec<&str> =
        object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    writeln!(page, "| field | type | always | meaning |\n|---|---|---|---|").unwrap();
    for (key, property) in properties {
        let always = if required.contains(&key.as_str()) { "yes" } else { "" };
        writeln!(page, "| `{key}` | {} | {always} | {} |", kind(property), described(property)).unwrap();
    }
    page.push('\n');
}

fn described(value: &Value) -> String {
    value["description"].as_str().unwrap_or("").replace('\n', " ").replace('|', "\\|")
}

fn kind(property: &Value) -> String {
    if let Some(constant) = property.get("const") {
        return format!("`{}`", constant.as_str().map_or_else(|| constant.to_string(), str::to_owned));
    }
    if let Some(name) = property["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or(name).to_owned();
    }
    if let Some(words) = property["enum"].as_array() {
        let words: Vec<String> =
            words.iter().map(|word| format!("`{}`", word.as_str().unwrap_or("null"))).collect();
        return words.join(", ");
    }
    let alternatives: Vec<String> = variants(property).map(kind).collect();
    if !alternatives.is_empty() {
        return alternatives.join(" or ");
    }
    let types: Vec<&str> = match &property["type"] {
        Value::String(word) => vec![word.as_str()],
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => return "any JSON".to_owned(),
    };
    let types: Vec<String> = types
        .into_iter()
        .map(|word| match (word, property.get("items")) {
            ("array", Some(items)) => format!("list of {}", kind(items)),
            _ => word.to_owned(),
        })
        .collect();
    types.join(" or ")
}
