//! Schemas are held against a full implementation of the standard; what is not enforced is refused, never
//! ignored.

use proptest::prelude::*;
use qwen_schema::Schema;
use serde_json::{Value, json};

/// Schemas and, for each, values of which some fit and some do not.
fn cases() -> Vec<(Value, Vec<Value>)> {
    let person = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name"],
        "additionalProperties": false,
    });
    let tree = json!({
        "$defs": {"node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "additionalProperties": false,
        }},
        "$ref": "#/$defs/node",
    });
    vec![
        (
            person,
            vec![
                json!({"name": "A"}),
                json!({"name": "", "age": 1}),
                json!({"age": -1}),
                json!({"name": "A", "more": 1}),
                json!([]),
                json!({"name": "A", "age": 1.0}),
            ],
        ),
        (
            tree,
            vec![
                json!({"children": [{"children": []}, {}]}),
                json!({"children": [{"child": 1}]}),
                json!({"children": [1]}),
            ],
        ),
        (
            json!({"type": ["string", "null"], "pattern": "^a+$", "maxLength": 3}),
            vec![json!("aa"), json!("aaaa"), json!("b"), json!(null), json!(1)],
        ),
        (
            json!({"enum": [1, "a", null, {"x": [1]}]}),
            vec![json!(1.0), json!("a"), json!({"x": [1.0]}), json!(2)],
        ),
        (json!({"const": {"a": 1}}), vec![json!({"a": 1.0}), json!({"a": 2})]),
        (
            json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1, "multipleOf": 0.1}),
            vec![json!(0.3), json!(0), json!(1), json!(0.35), json!(1.1), json!("x")],
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "number"},
                   "minItems": 1, "maxItems": 3, "uniqueItems": true}),
            vec![json!(["a", 1]), json!([1]), json!([]), json!(["a", 1, 1.0]), json!(["a", 1, 2, 3])],
        ),
        (
            json!({"contains": {"type": "integer"}, "minContains": 1, "maxContains": 2}),
            vec![json!([1, "a"]), json!(["a"]), json!([1, 2, 3]), json!("other")],
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"minimum": 5}], "not": {"const": 7}}),
            vec![json!("a"), json!(6), json!(3), json!(7)],
        ),
        (
            json!({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}),
            vec![json!(2), json!(3), json!(6), json!(5)],
        ),
        (
            json!({"if": {"properties": {"k": {"const": "a"}}, "required": ["k"]},
                   "then": {"required": ["a"]}, "else": {"required": ["b"]}}),
            vec![json!({"k": "a", "a": 1}), json!({"k": "a"}), json!({"b": 1}), json!({})],
        ),
        (
            json!({"patternProperties": {"^x_": {"type": "integer"}}, "propertyNames": {"maxLength": 4},
                   "additionalProperties": {"type": "string"}, "minProperties": 1, "maxProperties": 2}),
            vec![
                json!({"x_a": 1}),
                json!({"x_a": "1"}),
                json!({"b": "s"}),
                json!({"b": 1}),
                json!({}),
                json!({"long_name": "s"}),
                json!({"a": "", "b": "", "c": ""}),
            ],
        ),
        (
            json!({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}}),
            vec![
                json!({"a": 1}),
                json!({"a": 1, "b": 1}),
                json!({"c": 1}),
                json!({"c": 1, "d": 1}),
                json!({}),
            ],
        ),
        (
            json!({"allOf": [{"type": "integer"}, {"maximum": 3}], "x-note": "n", "title": "t"}),
            vec![json!(2), json!(4)],
        ),
        (json!({"properties": {"a": false, "b": true}}), vec![json!({"a": 1}), json!({"b": 1})]),
    ]
}

#[test]
fn schemas_mean_what_the_standard_says() {
    for (schema, values) in cases() {
        let ours = Schema::parse(&schema.to_string()).unwrap();
        let theirs = jsonschema::draft202012::new(&schema).unwrap();
        let verdicts: Vec<bool> =
            values.iter().map(|value| ours.problems(value, "the result").is_empty()).collect();
        let expected: Vec<bool> = values.iter().map(|value| theirs.is_valid(value)).collect();
        assert_eq!(verdicts, expected, "{schema}: {values:?}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..8).prop_map(Value::from),
        Just(json!(0.3)),
        Just(json!(2.0)),
        "[ab]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("name|age|children|a|b|c|d|k|x_a", inner, 0..4)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn any_value_is_judged_as_the_standard_judges_it(value in any_json()) {
        for (schema, _) in cases() {
            let ours = Schema::parse(&schema.to_string()).unwrap();
            let expected = jsonschema::draft202012::new(&schema).unwrap().is_valid(&value);
            prop_assert_eq!(ours.problems(&value, "the result").is_empty(), expected, "{}: {}", schema, value);
        }
    }

    #[test]
    fn no_text_breaks_the_reader_of_schemas(text in ".{0,40}") {
        let _ = Schema::parse(&text);
    }
}

#[test]
fn an_unsupported_keyword_is_refused_with_its_path() {
    for (schema, named) in [
        ("[]", "object"),
        ("{", "JSON"),
        (r#"{"unevaluatedProperties":false}"#, "unevaluatedProperties"),
        (r#"{"properties":{"a":{"typ":"string"}}}"#, "#/properties/a/typ"),
        (r#"{"type":"strin"}"#, "#/type"),
        (r#"{"type":[]}"#, "#/type"),
        (r#"{"minLength":-1}"#, "#/minLength"),
        (r#"{"required":"a"}"#, "#/required"),
        (r#"{"pattern":"(?=a)"}"#, "#/pattern"),
        (r##"{"$ref":"#/$defs/gone"}"##, "#/$defs/gone"),
        (r#"{"$ref":"https://example.com/s"}"#, "https://example.com/s"),
        (r#"{"anyOf":[]}"#, "#/anyOf"),
        (r#"{"multipleOf":0}"#, "#/multipleOf"),
    ] {
        let error = Schema::parse(schema).unwrap_err();
        assert!(error.to_string().contains(named), "{schema}: {error}");
    }
}

#[test]
fn a_schema_that_only_points_to_itself_ends() {
    let schema = Schema::parse(r##"{"$ref":"#"}"##).unwrap();
    assert!(!schema.problems(&json!(1), "the result").is_empty());
}

#[test]
fn what_a_tool_declares_beyond_the_supported_keywords_is_listed_and_the_rest_is_enforced() {
    let text = r#"{"type":"object","properties":{"n":{"type":"integer","pattern":"(?!a)"}},"unevaluatedProperties":false,"minProperties":-1}"#;
    let (schema, unsupported) = Schema::parse_supported(text).unwrap();
    let listed: Vec<String> = unsupported.iter().map(ToString::to_string).collect();
    assert_eq!(listed.len(), 3, "{listed:?}");
    assert!(
        listed.iter().any(|line| line.contains("#/properties/n/pattern") && line.contains("look-around"))
    );
    assert!(schema.problems(&json!({"n": 1, "more": 2}), "the arguments").is_empty());
    assert_eq!(
        schema.problems(&json!({"n": "x"}), "the arguments"),
        ["`/n` must be of type integer, not string"]
    );
}

#[test]
fn drafts_before_2020_12_are_read_where_they_differ() {
    let schema = Schema::parse(
        r#"{"items":[{"type":"string"}],"additionalItems":false,"dependencies":{"a":["b"],"c":{"required":["d"]}}}"#,
    )
    .unwrap();
    for (value, fits) in [
        (json!(["a"]), true),
        (json!([1]), false),
        (json!(["a", 1]), false),
        (json!({"a": 1}), false),
        (json!({"a": 1, "b": 1}), true),
        (json!({"c": 1}), false),
    ] {
        assert_eq!(schema.problems(&value, "it").is_empty(), fits, "{value}");
    }
}

#[test]
fn a_problem_names_the_place_and_what_would_fit() {
    let schema = json!({
        "type": "object",
        "properties": {
            "unit": {"enum": ["C", "F"]},
            "place": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "object", "required": ["lat"]}]},
        },
        "required": ["place"],
        "additionalProperties": false,
    });
    let schema = Schema::parse(&schema.to_string()).unwrap();
    for (value, problem) in [
        (json!({}), "the arguments lacks the property \"place\""),
        (json!({"place": "x", "unit": "K"}), "`/unit` must be one of [\"C\",\"F\"]"),
        (json!({"place": {}}), "`/place` fits no alternative: `/place` lacks the property \"lat\""),
        (
            json!({"place": 1}),
            "`/place` fits no alternative: `/place` must be of type string, not integer, or `/place` must be of type \
             object, not integer",
        ),
        (
            json!({"place": "x", "city": 1}),
            "the arguments must not have the property \"city\"; it has `place`, `unit`",
        ),
    ] {
        assert_eq!(schema.problems(&value, "the arguments"), [problem]);
    }
}

#[test]
fn deeply_nested_alternatives_take_linear_time() {
    let schema = Schema::parse(
        r##"{"anyOf":[{"type":"array","items":{"$ref":"#"}},{"type":"object","additionalProperties":{"$ref":"#"}}]}"##,
    )
    .unwrap();
    let mut value = json!(1);
    for n in 0..100 {
        value = if n % 2 == 0 { json!([value]) } else { json!({"a": value}) };
    }
    assert!(!schema.problems(&value, "it").is_empty());
}
