//! OTLP as JSON: the body of a request to `/v1/traces`, and its response.

use serde_json::{Value as Json, json};

use super::span::{Attributes, Kind, Mark, Span, Value};

/// The body of an export, on one line.
pub(super) fn request(resource: &[(String, String)], spans: &[Span]) -> String {
    let resource = self::resource(resource);
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let scope = json!({"name": "qwen", "version": env!("CARGO_PKG_VERSION")});
    json!({"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [{"scope": scope, "spans": spans}]}]})
        .to_string()
}

/// The attributes of the process.
pub(super) fn resource(resource: &[(String, String)]) -> Vec<Json> {
    resource.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
}

/// The number of spans that the collector refused according to its response, and the reason.
pub(super) fn refused(answer: &[u8]) -> Option<(u64, String)> {
    let answer: Json = serde_json::from_slice(answer).ok()?;
    let partial = answer.get("partialSuccess")?;
    let count = match partial.get("rejectedSpans")? {
        Json::String(text) => text.parse().ok()?,
        number => number.as_u64()?,
    };
    let why = partial.get("errorMessage").and_then(Json::as_str).unwrap_or_default();
    (count > 0).then(|| (count, why.to_owned()))
}

// In OTLP's JSON, 64-bit numbers are strings and ids are hexadecimal.
fn span(span: &Span) -> Json {
    let mut out = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "name": span.name,
        "kind": match span.kind { Kind::Internal => 1, Kind::Client => 3 },
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": attributes(&span.attributes),
        "flags": u8::from(span.context.sampled),
    });
    if let Some(parent) = span.parent {
        out["parentSpanId"] = format!("{parent:016x}").into();
    }
    if let Some(state) = &span.context.state {
        out["traceState"] = (**state).into();
    }
    if !span.marks.is_empty() {
        out["events"] = span.marks.iter().map(mark).collect();
    }
    if span.lost_marks > 0 {
        out["droppedEventsCount"] = span.lost_marks.into();
    }
    if let Some(error) = &span.error {
        out["status"] = json!({"code": 2, "message": &**error});
    }
    out
}

fn mark(mark: &Mark) -> Json {
    json!({"timeUnixNano": mark.at.to_string(), "name": mark.name, "attributes": attributes(&mark.attributes)})
}

fn attributes(attributes: &Attributes) -> Json {
    let attribute = |(key, value): &(&'static str, Value)| {
        let value = match value {
            Value::Text(text) => json!({"stringValue": &**text}),
            Value::Whole(number) => json!({"intValue": number.to_string()}),
            Value::Number(number) => json!({"doubleValue": number}),
            Value::Texts(texts) => {
                let texts: Vec<Json> = texts.iter().map(|text| json!({"stringValue": &**text})).collect();
                json!({"arrayValue": {"values": texts}})
            }
        };
        json!({"key": key, "value": value})
    };
    attributes.iter().map(attribute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_that_counts_refused_spans_says_so() {
        let cases: &[(&str, Option<u64>)] = &[
            ("", None),
            ("garbage", None),
            ("{}", None),
            (r#"{"partialSuccess":{}}"#, None),
            (r#"{"partialSuccess":{"rejectedSpans":"0"}}"#, None),
            (r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}"#, Some(3)),
            (r#"{"partialSuccess":{"rejectedSpans":3}}"#, Some(3)),
            (r#"{"partialSuccess":{"rejectedSpans":[]}}"#, None),
        ];
        for (answer, expected) in cases {
            assert_eq!(refused(answer.as_bytes()).map(|(count, _)| count), *expected, "{answer}");
        }
    }
}
