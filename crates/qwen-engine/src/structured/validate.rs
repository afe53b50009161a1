//! Holding a value to a schema, and saying where it does not fit.

use serde_json::{Map, Value};

use super::schema::{MOST_DEPTH, Schema, count};

/// How many problems are told; whoever mends these has the rest told next time.
const MOST_PROBLEMS: usize = 8;

impl Schema {
    /// What is wrong with `value`, each in a sentence; nothing when it fits.
    pub fn problems(&self, value: &Value) -> Vec<String> {
        let mut check = Check { schema: self, problems: Vec::new(), depth: 0 };
        check.value(&self.root, value, &mut String::new());
        check.problems
    }

    fn fits(&self, schema: &Value, value: &Value, depth: usize) -> bool {
        let mut check = Check { schema: self, problems: Vec::new(), depth };
        check.value(schema, value, &mut String::new());
        check.problems.is_empty()
    }
}

struct Check<'a> {
    schema: &'a Schema,
    problems: Vec<String>,
    depth: usize,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, at: &mut String) {
        if self.problems.len() >= MOST_PROBLEMS {
            return;
        }
        if self.depth >= MOST_DEPTH {
            return self.problem(at, "is nested too deeply to be checked");
        }
        self.depth += 1;
        match schema {
            Value::Bool(false) => self.problem(at, "must not be there"),
            Value::Object(keywords) => {
                self.general(keywords, value, at);
                match value {
                    Value::Number(_) => self.number(keywords, value, at),
                    Value::String(text) => self.text(keywords, text, at),
                    Value::Array(items) => self.array(keywords, items, at),
                    Value::Object(fields) => self.object(keywords, fields, at),
                    Value::Null | Value::Bool(_) => {}
                }
            }
            _ => {}
        }
        self.depth -= 1;
    }

    fn problem(&mut self, at: &str, what: impl std::fmt::Display) {
        let place = if at.is_empty() { "the result" } else { at };
        self.problems.push(format!("`{place}` {what}"));
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        self.schema.fits(schema, value, self.depth)
    }

    fn general(&mut self, keywords: &Map<String, Value>, value: &Value, at: &mut String) {
        if let Some(wanted) = keywords.get("type") {
            let names: Vec<&str> = match wanted {
                Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
                name => name.as_str().into_iter().collect(),
            };
            if !names.iter().any(|name| is_of_type(value, name)) {
                self.problem(at, format!("must be of type {}, not {}", names.join(" or "), type_of(value)));
            }
        }
        if let Some(allowed) = keywords.get("enum").and_then(Value::as_array)
            && !allowed.iter().any(|allowed| same(allowed, value))
        {
            self.problem(at, format!("must be one of {}", Value::from(allowed.clone())));
        }
        if let Some(wanted) = keywords.get("const")
            && !same(wanted, value)
        {
            self.problem(at, format!("must be {wanted}"));
        }
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str)
            && let Some(target) = self.schema.target(reference)
        {
            self.value(target, value, at);
        }
        for schema in list(keywords, "allOf") {
            self.value(schema, value, at);
        }
        if keywords.contains_key("anyOf") && !list(keywords, "anyOf").any(|schema| self.fits(schema, value)) {
            self.problem(at, format!("fits none of {}", keywords["anyOf"]));
        }
        if keywords.contains_key("oneOf") {
            let fitting = list(keywords, "oneOf").filter(|schema| self.fits(schema, value)).count();
            if fitting != 1 {
                self.problem(at, format!("must fit exactly one of {}, not {fitting}", keywords["oneOf"]));
            }
        }
        if let Some(schema) = keywords.get("not")
            && self.fits(schema, value)
        {
            self.problem(at, format!("must not fit {schema}"));
        }
        if let Some(condition) = keywords.get("if") {
            let branch = if self.fits(condition, value) { "then" } else { "else" };
            if let Some(schema) = keywords.get(branch) {
                self.value(schema, value, at);
            }
        }
    }

    fn number(&mut self, keywords: &Map<String, Value>, value: &Value, at: &str) {
        type Holds = fn(f64, f64) -> bool;
        let bounds: [(&str, &str, Holds); 4] = [
            ("minimum", "at least", |value, bound| value >= bound),
            ("maximum", "at most", |value, bound| value <= bound),
            ("exclusiveMinimum", "above", |value, bound| value > bound),
            ("exclusiveMaximum", "below", |value, bound| value < bound),
        ];
        let Some(number) = value.as_f64() else { return };
        for (keyword, words, holds) in bounds {
            if let Some(bound) = keywords.get(keyword)
                && !bound.as_f64().is_some_and(|bound| holds(number, bound))
            {
                self.problem(at, format!("must be {words} {bound}"));
            }
        }
        if let Some(step) = keywords.get("multipleOf")
            && !step.as_f64().is_some_and(|step| is_multiple(number, step))
        {
            self.problem(at, format!("must be a multiple of {step}"));
        }
    }

    fn text(&mut self, keywords: &Map<String, Value>, text: &str, at: &str) {
        self.size(keywords, ["minLength", "maxLength"], text.chars().count(), "characters", at);
        if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str)
            && !self.schema.patterns.get(pattern).is_some_and(|regex| regex.is_match(text))
        {
            self.problem(at, format!("must match the pattern {pattern:?}"));
        }
    }

    fn array(&mut self, keywords: &Map<String, Value>, items: &[Value], at: &mut String) {
        self.size(keywords, ["minItems", "maxItems"], items.len(), "items", at);
        let first: Vec<&Value> = list(keywords, "prefixItems").collect();
        let rest = keywords.get("items");
        for (n, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(n).copied().or(rest) {
                let length = at.len();
                at.extend(["/", &n.to_string()]);
                self.value(schema, item, at);
                at.truncate(length);
            }
        }
        if keywords.get("uniqueItems") == Some(&Value::Bool(true)) {
            let twice = items.iter().enumerate().any(|(n, item)| items[..n].iter().any(|i| same(i, item)));
            if twice {
                self.problem(at, "must not hold the same item twice");
            }
        }
        if let Some(schema) = keywords.get("contains") {
            let found = items.iter().filter(|item| self.fits(schema, item)).count() as u64;
            let least = keywords.get("minContains").and_then(count).unwrap_or(1);
            let most = keywords.get("maxContains").and_then(count).unwrap_or(u64::MAX);
            if !(least..=most).contains(&found) {
                self.problem(at, format!("has {found} items that fit {schema}"));
            }
        }
    }

    fn object(&mut self, keywords: &Map<String, Value>, fields: &Map<String, Value>, at: &mut String) {
        self.size(keywords, ["minProperties", "maxProperties"], fields.len(), "properties", at);
        self.required(keywords.get("required"), fields, at);
        let named = keywords.get("properties").and_then(Value::as_object);
        let patterns = keywords.get("patternProperties").and_then(Value::as_object);
        for (name, value) in fields {
            let length = at.len();
            at.extend(["/", name]);
            let mut described = false;
            if let Some(schema) = named.and_then(|named| named.get(name)) {
                described = true;
                self.value(schema, value, at);
            }
            for (pattern, schema) in patterns.into_iter().flatten() {
                if self.schema.patterns.get(pattern).is_some_and(|regex| regex.is_match(name)) {
                    described = true;
                    self.value(schema, value, at);
                }
            }
            if let Some(schema) = keywords.get("additionalProperties").filter(|_| !described) {
                self.value(schema, value, at);
            }
            if let Some(schema) = keywords.get("propertyNames")
                && !self.fits(schema, &Value::from(name.as_str()))
            {
                self.problem(at, format!("has a name that does not fit {schema}"));
            }
            at.truncate(length);
        }
        let dependent =
            |keyword: &str| keywords.get(keyword).and_then(Value::as_object).into_iter().flatten();
        for (name, names) in dependent("dependentRequired") {
            if fields.contains_key(name) {
                self.required(Some(names), fields, at);
            }
        }
        for (name, schema) in dependent("dependentSchemas") {
            if fields.contains_key(name) {
                self.value(schema, &Value::Object(fields.clone()), at);
            }
        }
    }

    fn required(&mut self, names: Option<&Value>, fields: &Map<String, Value>, at: &str) {
        let names = names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for name in names.filter(|name| !fields.contains_key(*name)) {
            self.problem(at, format!("lacks the property {name:?}"));
        }
    }

    fn size(&mut self, keywords: &Map<String, Value>, names: [&str; 2], size: usize, what: &str, at: &str) {
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

fn list<'a>(keywords: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Value> {
    keywords.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_whole(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    let own = type_of(value);
    own == name || (name == "number" && own == "integer")
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn is_multiple(number: f64, step: f64) -> bool {
    let times = number / step;
    // 0.3 is a multiple of 0.1, though not to the last bit.
    times.is_finite() && (times - times.round()).abs() <= times.abs().max(1.0) * 1e-12
}

/// Whether two values are the same data: numbers by what they are worth.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64()))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => one == other,
    }
}
