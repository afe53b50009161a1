//! Tests of requesting and extracting structured answers.

use serde_json::Value;

use super::*;

#[test]
fn a_schema_that_cannot_be_enforced_is_a_usage_error() {
    let error = AnswerSchema::parse(r#"{"unevaluatedProperties":false}"#).unwrap_err();
    assert_eq!((error.code, error.exit_code()), ("invalid_json_schema", 2));
    assert!(error.message.contains("unevaluatedProperties"), "{error}");
}

#[test]
fn a_result_that_is_no_object_is_wrapped_in_a_named_argument() {
    let form = AnswerSchema::parse(
        r##"{"type":"array","items":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"integer"}}}"##,
    );
    let form = form.unwrap();
    let parameters: Value = serde_json::from_str(form.spec.parameters.as_str()).unwrap();
    assert_eq!(parameters["type"], "object");
    assert_eq!(parameters["properties"]["value"]["items"]["$ref"], "#/properties/value/$defs/n");
    assert_eq!(form.of_arguments(&Json::trusted(r#"{"value":[1,2]}"#)), Ok(Json::trusted("[1,2]")));
    assert!(form.of_arguments(&Json::trusted(r#"{"value":["a"]}"#)).is_err());
    assert!(form.of_arguments(&Json::trusted("{}")).is_err());
}

#[test]
fn an_answer_in_words_may_stand_in_a_block_of_code() {
    let form = AnswerSchema::parse(r#"{"type":"object","required":["n"]}"#).unwrap();
    for words in ["{\"n\":1}", " {\"n\": 1}\n", "```json\n{\"n\":1}\n```", "```\n{\"n\":1}\n```"] {
        assert_eq!(form.of_words(words), Ok(Json::trusted("{\"n\":1}")), "{words:?}");
    }
    for words in ["", "n is 1", "{}", "{\"n\":1} as you wished"] {
        assert!(form.of_words(words).is_err(), "{words:?}");
    }
}
