//! Validates a value against a schema and reports where it does not match.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use crate::alternatives::{explain, quote};
use crate::equality::{compare, is_equal, is_multiple, is_of_type, type_of};
use crate::reader::{count, is_names, is_types};
use crate::{MAX_DEPTH, Schema, reference};

/// How many problems are listed; the rest shows when these are fixed.
const MAX_PROBLEMS: usize = 8;

type Keywords = Map<String, Value>;

/// What is wrong with `value`.
pub(crate) fn problems(schema: &Schema, value: &Value, root: &str) -> Vec<String> {
    let mut validator = Validator { schema, root, limit: MAX_PROBLEMS, problems: Vec::new(), depth: 0 };
    validator.value(&schema.root, value, &mut String::new());
    validator.problems
}

/// One check of one value. A keyword whose value is malformed is skipped: [`crate::reader`] has listed it.
pub(crate) struct Validator<'a> {
    schema: &'a Schema,
    root: &'a str,
    /// How many problems are looked for. Only a check for more than one explains alternatives, which bounds
    /// the work.
    limit: usize,
    problems: Vec<String>,
    depth: usize,
}

impl<'a> Validator<'a> {
    /// The first problem that `value`, found at `at`, has with one alternative.
    pub(crate) fn first_problem(
        schema: &'a Schema,
        alternative: &Value,
        value: &Value,
        depth: usize,
        at: &str,
    ) -> Option<String> {
        let mut validator = Self { schema, root: "it", limit: 1, problems: Vec::new(), depth };
        validator.value(alternative, value, &mut at.to_owned());
        validator.problems.into_iter().next()
    }

    fn value(&mut self, schema: &Value, value: &Value, at: &mut String) {
        if self.problems.len() >= self.limit {
            return;
        }
        if self.depth >= MAX_DEPTH {
            return self.problem(at, "is nested too deeply to be checked");
        }
        self.depth += 1;
        match schema {
            Value::Bool(false) => self.problem(at, "is not allowed"),
            Value::Object(keywords) => {
                self.general(keywords, value, at);
                self.combined(keywords, value, at);
                match value {
                    Value::Number(number) => self.number(keywords, number, at),
                    Value::String(text) => self.text(keywords, text, at),
                    Value::Array(items) => self.array(keywords, items, at),
                    Value::Object(fields) => self.object(keywords, value, fields, at),
                    Value::Null | Value::Bool(_) => {}
                }
            }
            _ => {}
        }
        self.depth -= 1;
    }

    fn problem(&mut self, at: &str, what: impl std::fmt::Display) {
        let problem = if at.is_empty() { format!("{} {what}", self.root) } else { format!("`{at}` {what}") };
        self.problems.push(problem);
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        Self::first_problem(self.schema, schema, value, self.depth, "").is_none()
    }

    fn general(&mut self, keywords: &Keywords, value: &Value, at: &str) {
        if let Some(wanted) = keywords.get("type").filter(|wanted| is_types(wanted)) {
            let names: Vec<&str> = match wanted {
                Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
                name => name.as_str().into_iter().collect(),
            };
            if !names.iter().any(|name| is_of_type(value, name)) {
                self.problem(at, format!("must be of type {}, not {}", names.join(" or "), type_of(value)));
            }
        }
        if let Some(allowed) = keywords.get("enum").and_then(Value::as_array)
            && !allowed.iter().any(|allowed| is_equal(allowed, value))
        {
            self.problem(at, format!("must be one of {}", quote(&Value::from(allowed.clone()))));
        }
        if let Some(wanted) = keywords.get("const")
            && !is_equal(wanted, value)
        {
            self.problem(at, format!("must be {}", quote(wanted)));
        }
    }

    fn combined(&mut self, keywords: &Keywords, value: &Value, at: &mut String) {
        if let Some(target) = keywords.get("$ref").and_then(Value::as_str)
            && let Some(target) = reference::resolve(&self.schema.root, target)
        {
            self.value(target, value, at);
        }
        for schema in list(keywords, "allOf") {
            self.value(schema, value, at);
        }
        let any = list(keywords, "anyOf");
        if !any.is_empty() && !any.iter().any(|schema| self.fits(schema, value)) {
            self.no_alternative(any, value, at);
        }
        let one = list(keywords, "oneOf");
        if !one.is_empty() {
            match one.iter().filter(|schema| self.fits(schema, value)).count() {
                1 => {}
                0 => self.no_alternative(one, value, at),
                fitting => self.problem(at, format!("must fit exactly one alternative and fits {fitting}")),
            }
        }
        if let Some(schema) = keywords.get("not")
            && self.fits(schema, value)
        {
            self.problem(at, format!("must not fit {}", quote(schema)));
        }
        if let Some(condition) = keywords.get("if") {
            let branch = if self.fits(condition, value) { "then" } else { "else" };
            if let Some(schema) = keywords.get(branch) {
                self.value(schema, value, at);
            }
        }
    }

    fn no_alternative(&mut self, schemas: &[Value], value: &Value, at: &str) {
        if self.limit == 1 {
            return self.problem(at, "fits no alternative");
        }
        let why = explain(self.schema, schemas, value, self.depth, at);
        self.problem(at, why);
    }

    fn number(&mut self, keywords: &Keywords, number: &Number, at: &str) {
        type Holds = fn(Ordering) -> bool;
        let bounds: [(&str, &str, Holds); 4] = [
            ("minimum", "at least", Ordering::is_ge),
            ("maximum", "at most", Ordering::is_le),
            ("exclusiveMinimum", "above", Ordering::is_gt),
            ("exclusiveMaximum", "below", Ordering::is_lt),
        ];
        for (keyword, words, holds) in bounds {
            if let Some(Value::Number(bound)) = keywords.get(keyword)
                && !compare(number, bound).is_none_or(holds)
            {
                self.problem(at, format!("must be {words} {bound}"));
            }
        }
        if let Some(Value::Number(step)) = keywords.get("multipleOf")
            && step.as_f64().is_some_and(|step| step > 0.0)
            && !is_multiple(number, step)
        {
            self.problem(at, format!("must be a multiple of {step}"));
        }
    }

    fn text(&mut self, keywords: &Keywords, text: &str, at: &str) {
        self.size(keywords, ["minLength", "maxLength"], text.chars().count(), "characters", at);
        if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str)
            && self.schema.patterns.get(pattern).is_some_and(|regex| !regex.is_match(text))
        {
            self.problem(at, format!("must match the pattern {pattern:?}"));
        }
    }

    fn array(&mut self, keywords: &Keywords, items: &[Value], at: &mut String) {
        self.size(keywords, ["minItems", "maxItems"], items.len(), "items", at);
        let (first, rest) = match keywords.get("items") {
            Some(Value::Array(first)) => (first.as_slice(), keywords.get("additionalItems")),
            rest => (list(keywords, "prefixItems"), rest),
        };
        for (n, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(n).or(rest) {
                self.at_member(&n.to_string(), schema, item, at);
            }
        }
        if keywords.get("uniqueItems") == Some(&Value::Bool(true)) {
            let twice =
                items.iter().enumerate().any(|(n, item)| items[..n].iter().any(|i| is_equal(i, item)));
            if twice {
                self.problem(at, "must not contain the same item twice");
            }
        }
        if let Some(schema) = keywords.get("contains") {
            let found = items.iter().filter(|item| self.fits(schema, item)).count() as u64;
            let least = keywords.get("minContains").and_then(count).unwrap_or(1);
            let most = keywords.get("maxContains").and_then(count).unwrap_or(u64::MAX);
            if !(least..=most).contains(&found) {
                self.problem(at, format!("has {found} items that fit {}", quote(schema)));
            }
        }
    }

    fn object(&mut self, keywords: &Keywords, value: &Value, fields: &Keywords, at: &mut String) {
        self.size(keywords, ["minProperties", "maxProperties"], fields.len(), "properties", at);
        self.required(keywords.get("required"), fields, at);
        for (name, field) in fields {
            self.field(keywords, name, field, at);
        }
        for (name, names) in entries(keywords, "dependentRequired") {
            if fields.contains_key(name) {
                self.required(Some(names), fields, at);
            }
        }
        for (name, schema) in entries(keywords, "dependentSchemas") {
            if fields.contains_key(name) {
                self.value(schema, value, at);
            }
        }
        for (name, dependency) in entries(keywords, "dependencies") {
            if fields.contains_key(name) {
                if is_names(dependency) {
                    self.required(Some(dependency), fields, at);
                } else {
                    self.value(dependency, value, at);
                }
            }
        }
    }

    fn field(&mut self, keywords: &Keywords, name: &str, field: &Value, at: &mut String) {
        let mut described = false;
        if let Some(schema) = keywords.get("properties").and_then(|named| named.get(name)) {
            described = true;
            self.at_member(name, schema, field, at);
        }
        for (pattern, schema) in entries(keywords, "patternProperties") {
            // A name that an unusable pattern might have matched counts as described.
            let Some(regex) = self.schema.patterns.get(pattern) else {
                described = true;
                continue;
            };
            if regex.is_match(name) {
                described = true;
                self.at_member(name, schema, field, at);
            }
        }
        match keywords.get("additionalProperties") {
            Some(_) if described => {}
            Some(Value::Bool(false)) => {
                let known: Vec<String> =
                    entries(keywords, "properties").map(|(name, _)| format!("`{name}`")).collect();
                let known =
                    if known.is_empty() { String::new() } else { format!("; it has {}", known.join(", ")) };
                self.problem(at, format!("must not have the property {:?}{known}", shortened(name)));
            }
            Some(schema) => self.at_member(name, schema, field, at),
            None => {}
        }
        if let Some(schema) = keywords.get("propertyNames")
            && !self.fits(schema, &Value::from(name))
        {
            self.problem(at, format!("has a property name {:?} that does not fit", shortened(name)));
        }
    }

    fn at_member(&mut self, name: &str, schema: &Value, value: &Value, at: &mut String) {
        let length = at.len();
        at.push('/');
        at.push_str(shortened(name));
        self.value(schema, value, at);
        at.truncate(length);
    }

    fn required(&mut self, names: Option<&Value>, fields: &Keywords, at: &str) {
        let names = names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for name in names.filter(|name| !fields.contains_key(*name)) {
            self.problem(at, format!("lacks the property {name:?}"));
        }
    }

    fn size(&mut self, keywords: &Keywords, names: [&str; 2], size: usize, what: &str, at: &str) {
        let bound = |name: &str| keywords.get(name).and_then(count);
        let size = size as u64;
        if let Some(least) = bound(names[0]).filter(|least| size < *least) {
            self.problem(at, format!("must have at least {least} {what}"));
        }
        if let Some(most) = bound(names[1]).filter(|most| size > *most) {
            self.problem(at, format!("must have at most {most} {what}"));
        }
    }
}

fn list<'a>(keywords: &'a Keywords, name: &str) -> &'a [Value] {
    keywords.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn entries<'a>(
    keywords: &'a Keywords,
    name: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    keywords.get(name).and_then(Value::as_object).into_iter().flatten()
}

/// A name that a model wrote, short enough for a message.
fn shortened(name: &str) -> &str {
    let end = name.char_indices().nth(80).map_or(name.len(), |(end, _)| end);
    &name[..end]
}
