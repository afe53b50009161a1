//! Oddities of the servers that speak OpenAI's wire in their own way, each as data.

use qwen_events::Finish;
use qwen_model::Piece;

use crate::asking::{Outcome, answer_to};
use crate::server::{response, stream};

/// An answer made of these chunks and the end mark.
async fn chunks(chunks: &[&str]) -> Outcome {
    let events: Vec<String> =
        chunks.iter().chain(&["[DONE]"]).map(|chunk| format!("data: {chunk}\n\n")).collect();
    answer_to(stream(events.concat())).await
}

/// An answer whose calls are these pieces.
async fn calls(pieces: &[&str]) -> Outcome {
    let wrapped: Vec<String> = pieces
        .iter()
        .map(|piece| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{piece}]}}}}]}}"#))
        .collect();
    let mut all: Vec<&str> = wrapped.iter().map(String::as_str).collect();
    all.push(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#);
    chunks(&all).await
}

#[tokio::test]
async fn calls_are_put_together_however_they_are_cut_and_labelled() {
    const A: &str = r#"{"a":1}"#;
    const B: &str = r#"{"b":2}"#;
    // Each case: what it is, the pieces, and the calls as (id or "" for a minted one, name, arguments).
    type Call<'a> = (&'a str, &'a str, &'a str);
    let cases: &[(&str, &[&str], &[Call<'_>])] = &[
        (
            "index and id once, arguments in pieces",
            &[
                r#"{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":""}}"#,
                r#"{"index":0,"function":{"arguments":"{\"a\""}}"#,
                r#"{"index":0,"function":{"arguments":":1}"}}"#,
                r#"{"index":1,"id":"y","function":{"name":"g","arguments":"{\"b\":2}"}}"#,
            ],
            &[("x", "f", A), ("y", "g", B)],
        ),
        (
            "pieces of two calls mixed",
            &[
                r#"{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\""}}"#,
                r#"{"index":1,"id":"y","function":{"name":"g","arguments":"{\"b\""}}"#,
                r#"{"index":0,"function":{"arguments":":1}"}}"#,
                r#"{"index":1,"function":{"arguments":":2}"}}"#,
            ],
            &[("x", "f", A), ("y", "g", B)],
        ),
        (
            "no index, whole calls in one chunk",
            &[
                r#"{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"y","function":{"name":"g","arguments":"{\"b\":2}"}}"#,
            ],
            &[("x", "f", A), ("y", "g", B)],
        ),
        (
            "no index, told by id",
            &[
                r#"{"id":"x","function":{"name":"f","arguments":"{\"a\""}}"#,
                r#"{"id":"x","function":{"arguments":":1}"}}"#,
                r#"{"id":"y","function":{"name":"g","arguments":"{\"b\":2}"}}"#,
            ],
            &[("x", "f", A), ("y", "g", B)],
        ),
        (
            "no index and no further id: the last call goes on",
            &[
                r#"{"id":"x","function":{"name":"f","arguments":"{\"a\""}}"#,
                r#"{"function":{"arguments":":1}"}}"#,
            ],
            &[("x", "f", A)],
        ),
        (
            "a new id at the same index is a new call",
            &[
                r#"{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}"#,
                r#"{"index":0,"id":"y","function":{"name":"g","arguments":"{\"b\":2}"}}"#,
            ],
            &[("x", "f", A), ("y", "g", B)],
        ),
        (
            "a new id with every piece: a piece without a name goes on",
            &[
                r#"{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\""}}"#,
                r#"{"index":0,"id":"y","function":{"arguments":":1}"}}"#,
                r#"{"index":1,"id":"z","function":{"name":"g","arguments":"{\"b\""}}"#,
                r#"{"index":1,"id":"w","function":{"arguments":":2}"}}"#,
            ],
            &[("x", "f", A), ("z", "g", B)],
        ),
        (
            "no ids at all: they are minted",
            &[
                r#"{"index":0,"function":{"name":"f","arguments":"{\"a\":1}"}}"#,
                r#"{"index":1,"id":"","function":{"name":"g","arguments":"{\"b\":2}"}}"#,
            ],
            &[("", "f", A), ("", "g", B)],
        ),
        (
            "no ids and always index 0: a whole call is followed by a new one",
            &[
                r#"{"index":0,"function":{"name":"f","arguments":"{\"a\":1}"}}"#,
                r#"{"index":0,"function":{"name":"f","arguments":"{\"b\":2}"}}"#,
            ],
            &[("", "f", A), ("", "f", B)],
        ),
        (
            "neither ids nor indexes",
            &[
                r#"{"function":{"name":"f","arguments":{"a":1}}}"#,
                r#"{"function":{"name":"g","arguments":{"b":2}}}"#,
            ],
            &[("", "f", A), ("", "g", B)],
        ),
        (
            "id and name in every chunk",
            &[
                r#"{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\""}}"#,
                r#"{"index":0,"id":"x","function":{"name":"f","arguments":":1}"}}"#,
            ],
            &[("x", "f", A)],
        ),
        (
            "the name in every chunk, no id",
            &[
                r#"{"index":0,"function":{"name":"f","arguments":"{\"a\""}}"#,
                r#"{"index":0,"function":{"name":"f","arguments":":1}"}}"#,
            ],
            &[("", "f", A)],
        ),
        (
            "another name under the same id says nothing",
            &[
                r#"{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\""}}"#,
                r#"{"index":0,"id":"x","function":{"name":"other","arguments":":1}"}}"#,
            ],
            &[("x", "f", A)],
        ),
        (
            "an id that comes late belongs to the call, which was named already",
            &[
                r#"{"index":0,"function":{"name":"f","arguments":"{\"a\""}}"#,
                r#"{"index":0,"id":"late","function":{"arguments":":1}"}}"#,
            ],
            &[("", "f", A)],
        ),
        (
            "a name that comes late is waited for",
            &[
                r#"{"index":0,"id":"x","function":{"arguments":"{\"a\""}}"#,
                r#"{"index":0,"function":{"name":"f","arguments":":1}"}}"#,
            ],
            &[("x", "f", A)],
        ),
        (
            "a name in two pieces",
            &[
                r#"{"index":0,"id":"x","function":{"name":"read_"}}"#,
                r#"{"index":0,"function":{"name":"file","arguments":""}}"#,
                r#"{"index":0,"function":{"arguments":"{\"a\":1}"}}"#,
            ],
            &[("x", "read_file", A)],
        ),
        (
            "a name in two pieces, no id",
            &[
                r#"{"index":0,"function":{"name":"read_"}}"#,
                r#"{"index":0,"function":{"name":"file"}}"#,
                r#"{"index":1,"function":{"name":"g","arguments":"{\"b\":2}"}}"#,
            ],
            &[("", "read_file", ""), ("", "g", B)],
        ),
        (
            "the whole name again before and with the arguments",
            &[
                r#"{"index":0,"id":"x","function":{"name":"read_file","arguments":""}}"#,
                r#"{"index":0,"id":"x","function":{"name":"read_file","arguments":""}}"#,
                r#"{"index":0,"id":"x","function":{"name":"read_file","arguments":"{\"a\""}}"#,
                r#"{"index":0,"id":"x","function":{"name":"read_file","arguments":":1}"}}"#,
            ],
            &[("x", "read_file", A)],
        ),
        (
            "the name as far as it is written, again and again",
            &[
                r#"{"index":0,"id":"x","function":{"name":"read"}}"#,
                r#"{"index":0,"id":"x","function":{"name":"read_file"}}"#,
                r#"{"index":0,"id":"x","function":{"arguments":"{\"a\":1}"}}"#,
            ],
            &[("x", "read_file", A)],
        ),
        (
            "a name that never comes",
            &[r#"{"index":0,"id":"x","function":{"arguments":"{}"}}"#],
            &[("x", "", "{}")],
        ),
        (
            "the same id for two calls: the second gets its own",
            &[
                r#"{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}"#,
                r#"{"index":1,"id":"x","function":{"name":"g","arguments":"{\"b\":2}"}}"#,
            ],
            &[("x", "f", A), ("", "g", B)],
        ),
        (
            "arguments as an object, null, or not at all",
            &[
                r#"{"index":0,"id":"x","function":{"name":"f","arguments":{"a":1}}}"#,
                r#"{"index":1,"id":"y","function":{"name":"g","arguments":null}}"#,
                r#"{"index":2,"id":"z","function":{"name":"h"}}"#,
            ],
            &[("x", "f", A), ("y", "g", ""), ("z", "h", "")],
        ),
        (
            "indexes that begin at 1",
            &[r#"{"index":1,"id":"x","function":{"name":"f","arguments":"{}"}}"#],
            &[("x", "f", "{}")],
        ),
    ];
    for (what, pieces, expected) in cases {
        let outcome = calls(pieces).await;
        assert_eq!(outcome.error, None, "{what}");
        assert_eq!(outcome.finish(), Some(Finish::ToolCalls), "{what}");
        let found = outcome.calls();
        assert_eq!(found.len(), expected.len(), "{what}: {found:?}");
        for ((id, name, arguments), (wanted_id, wanted_name, wanted_arguments)) in found.iter().zip(*expected)
        {
            let minted = id.starts_with("call_") && id.len() == 29;
            assert!(if wanted_id.is_empty() { minted } else { id == wanted_id }, "{what}: {found:?}");
            assert_eq!((name.as_str(), arguments.as_str()), (*wanted_name, *wanted_arguments), "{what}");
        }
    }
}

#[tokio::test]
async fn reasons_to_stop_are_read_with_tolerance() {
    const CALL: &str = r#"{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}"#;
    const TEXT: &str = r#"{"content":"a"}"#;
    for (delta, reason, finish) in [
        (TEXT, r#""stop""#, Finish::Stop),
        (TEXT, r#""end_turn""#, Finish::Stop),
        (TEXT, r#""eos""#, Finish::Stop),
        (TEXT, r#""whatever""#, Finish::Stop),
        (TEXT, r#""length""#, Finish::Length),
        (TEXT, r#""max_tokens""#, Finish::Length),
        (TEXT, r#""content_filter""#, Finish::ContentFilter),
        (TEXT, r#""tool_calls""#, Finish::Stop),
        (TEXT, r#""function_call""#, Finish::Stop),
        (TEXT, r#""""#, Finish::Stop),
        (TEXT, r#""null""#, Finish::Stop),
        (TEXT, "null", Finish::Stop),
        (CALL, r#""tool_calls""#, Finish::ToolCalls),
        (CALL, r#""stop""#, Finish::ToolCalls),
        (CALL, r#""function_call""#, Finish::ToolCalls),
        (CALL, "null", Finish::ToolCalls),
        (CALL, r#""length""#, Finish::Length),
    ] {
        let chunk = format!(r#"{{"choices":[{{"delta":{delta},"finish_reason":{reason}}}]}}"#);
        let outcome = chunks(&[&chunk]).await;
        assert_eq!((outcome.finish(), outcome.error.as_ref()), (Some(finish), None), "{delta} {reason}");
    }
}

#[tokio::test]
async fn texts_and_thoughts_come_in_many_forms() {
    for (delta, thought, text) in [
        (r#"{"content":"a"}"#, "", "a"),
        (r#"{"role":"assistant","content":null,"reasoning_content":"t"}"#, "t", ""),
        (r#"{"content":"a","reasoning":"t"}"#, "t", "a"),
        (r#"{"content":"a","reasoning":"t","reasoning_content":"t"}"#, "t", "a"),
        (r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, "", "ab"),
        (r#"{"content":{"type":"text","text":"a"}}"#, "", "a"),
        (r#"{"content":"a\n\"ü\" \ud83d\ude00"}"#, "", "a\n\"ü\" 😀"),
        (r#"{"refusal":"no"}"#, "", "no"),
        (r#"{"content":"a","unknown":{"deep":[1,{"x":null}]},"tool_calls":null}"#, "", "a"),
        (r#"{"content":"a","tool_calls":[]}"#, "", "a"),
    ] {
        let chunk = format!(r#"{{"choices":[{{"delta":{delta},"finish_reason":"stop"}}]}}"#);
        let outcome = chunks(&[&chunk]).await;
        assert_eq!((outcome.thought().as_str(), outcome.text().as_str()), (thought, text), "{delta}");
        assert_eq!(outcome.error, None, "{delta}");
    }
}

#[tokio::test]
async fn a_choice_that_was_not_asked_for_is_not_mixed_into_the_answer() {
    let outcome = chunks(&[
        r#"{"choices":[{"index":1,"delta":{"content":"B"}},{"index":0,"delta":{"content":"A"}}]}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"C"},"finish_reason":"length"}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"D"},"finish_reason":"stop"}]}"#,
    ])
    .await;
    assert_eq!((outcome.text().as_str(), outcome.finish(), outcome.error), ("AD", Some(Finish::Stop), None));
}

#[tokio::test]
async fn a_call_of_the_time_before_there_were_several_is_a_call() {
    let outcome = chunks(&[
        r#"{"choices":[{"delta":{"role":"assistant","content":null,"function_call":{"name":"f","arguments":""}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":"{\"a\""}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":":1}"}}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"function_call"}]}"#,
    ])
    .await;
    let found = outcome.calls();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].1.as_str(), found[0].2.as_str()), ("f", r#"{"a":1}"#));
    assert_eq!((outcome.finish(), outcome.error), (Some(Finish::ToolCalls), None));
}

#[tokio::test]
async fn an_empty_call_of_that_kind_in_a_text_chunk_is_none() {
    let outcome = chunks(&[
        r#"{"choices":[{"delta":{"content":"a","function_call":{"name":"","arguments":""}},"finish_reason":"stop"}]}"#,
    ])
    .await;
    assert_eq!(
        (outcome.text().as_str(), outcome.calls().len(), outcome.finish()),
        ("a", 0, Some(Finish::Stop))
    );
}

#[tokio::test]
async fn a_character_that_is_cut_in_two_is_put_together() {
    let outcome = chunks(&[
        r#"{"choices":[{"delta":{"content":"a\ud83d"}}]}"#,
        r#"{"choices":[{"delta":{"content":"\ude00b"},"finish_reason":"stop"}]}"#,
    ])
    .await;
    assert_eq!((outcome.text().as_str(), outcome.error), ("a😀b", None));
}

#[tokio::test]
async fn usage_is_found_wherever_it_is_reported() {
    const TEXT: &str = r#"{"choices":[{"delta":{"content":"abcdefgh"},"finish_reason":"stop"}]}"#;
    for (chunks_, prompt, completion, cached, thought, estimated) in [
        (
            vec![TEXT, r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#],
            7,
            2,
            0,
            0,
            false,
        ),
        (
            vec![
                r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":7,"completion_tokens":1}}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":9}}"#,
            ],
            7,
            9,
            0,
            0,
            false,
        ),
        (vec![TEXT, r#"{"choices":[],"usage":null}"#], 4, 2, 0, 0, true),
        (vec![TEXT], 4, 2, 0, 0, true),
        (
            vec![
                TEXT,
                r#"{"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":1}}}"#,
            ],
            7,
            2,
            5,
            1,
            false,
        ),
        (
            vec![
                TEXT,
                r#"{"choices":[],"usage":{"prompt_tokens":7.0,"completion_tokens":"2","prompt_cache_hit_tokens":3,"prompt_tokens_details":null}}"#,
            ],
            7,
            2,
            3,
            0,
            false,
        ),
        (
            vec![
                r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":1}}]}"#,
            ],
            1,
            1,
            0,
            0,
            false,
        ),
    ] {
        let usage = chunks(&chunks_).await.usage().unwrap();
        assert_eq!(
            (
                usage.prompt_tokens,
                usage.completion_tokens,
                usage.cached_tokens,
                usage.thought_tokens,
                usage.estimated
            ),
            (prompt, completion, cached, thought, estimated),
            "{chunks_:?}"
        );
    }
}

#[tokio::test]
async fn the_end_mark_may_be_missing_after_a_reason() {
    let finished = r#"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    for end in ["\n\n", "\n", "", "\r\n\r\n", "\n\ndata: [DONE]", "\n\ndata:[DONE]\n\n: bye\n\n", "\n\n: bye"]
    {
        let outcome = answer_to(stream(format!("{finished}{end}"))).await;
        assert_eq!(
            (outcome.text().as_str(), outcome.finish(), outcome.error),
            ("a", Some(Finish::Stop), None),
            "{end:?}"
        );
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = r#"{"model":"m1","choices":[{"message":{"role":"assistant","content":"whole","tool_calls":[
        {"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
        {"type":"function","function":{"name":"g","arguments":{"b":2}}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":3,"completion_tokens":4}}"#;
    for content_type in
        ["application/json", "application/json; charset=utf-8", "text/event-stream", "text/plain"]
    {
        let outcome = answer_to(response("200 OK", content_type, body)).await;
        assert_eq!(outcome.pieces[0], Piece::Start { model: "m1".into() });
        assert_eq!((outcome.text().as_str(), outcome.finish()), ("whole", Some(Finish::ToolCalls)));
        let calls = outcome.calls();
        assert_eq!((calls[0].0.as_str(), calls[1].1.as_str(), calls[1].2.as_str()), ("x", "g", r#"{"b":2}"#));
        assert_eq!(outcome.usage().unwrap().total(), 7);
    }
}

#[tokio::test]
async fn an_event_stream_under_a_wrong_label_is_read() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    for content_type in ["text/plain", "application/octet-stream", "application/json", ""] {
        assert_eq!(answer_to(response("200 OK", content_type, body)).await.text(), "a", "{content_type}");
    }
    let with_bom = [b"\xef\xbb\xbf", body.as_bytes()].concat();
    assert_eq!(answer_to(stream(with_bom)).await.text(), "a");
}

#[tokio::test]
async fn fields_that_a_provider_puts_on_a_call_are_kept_for_it() {
    const SIGNED: &str = r#"{"extra_content":{"google":{"thought_signature":"c2ln"}}}"#;
    for pieces in [
        &[
            r#"{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}"#,
        ][..],
        // Before the arguments, after them, and in any order of keys.
        &[
            r#"{"extra_content":{"google":{"thought_signature":"c2ln"}},"index":0,"id":"x","function":{"name":"f","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"{}"}}"#,
        ],
        &[
            r#"{"index":0,"id":"x","function":{"name":"f","arguments":"{}"},"custom":null,"score":1}"#,
            r#"{"index":0,"extra_content":{"google":{"thought_signature":"c2ln"}}}"#,
        ],
    ] {
        let outcome = calls(pieces).await;
        assert_eq!(outcome.calls(), [("x".to_owned(), "f".to_owned(), "{}".to_owned())], "{pieces:?}");
        let fields: Vec<&str> = outcome
            .pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::CallFields { index: 0, fields } => Some(fields.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(fields.last(), Some(&SIGNED), "{pieces:?}");
    }
}

#[tokio::test]
async fn thinking_inside_a_list_of_parts_is_a_thought_in_any_order_of_keys() {
    for part in [
        r#"{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}"#,
        r#"{"thinking":[{"text":"hm","type":"text"}],"type":"thinking"}"#,
        r#"{"type":"thinking","thinking":"hm"}"#,
        r#"{"text":"hm","type":"reasoning"}"#,
    ] {
        let delta = format!(
            r#"{{"choices":[{{"delta":{{"content":[{part},{{"type":"text","text":"Hello"}}]}},"finish_reason":"stop"}}]}}"#
        );
        let outcome = chunks(&[&delta]).await;
        assert_eq!((outcome.thought().as_str(), outcome.text().as_str()), ("hm", "Hello"), "{part}");
    }
}

#[tokio::test]
async fn usage_is_read_wherever_a_server_reports_it() {
    let hello = r#"{"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}"#;
    for reported in [
        r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}"#,
        r#"{"choices":[],"usage":{"input_tokens":7,"output_tokens":3}}"#,
        r#"{"choices":[{"delta":{}}],"x_groq":{"id":"req","usage":{"prompt_tokens":7,"completion_tokens":3}}}"#,
        r#"{"choices":[{"delta":{},"usage":{"prompt_tokens":7,"completion_tokens":3}}]}"#,
        r#"{"choices":[{"delta":{"usage":{"prompt_tokens":7,"completion_tokens":3}}}]}"#,
        r#"{"choices":[{"delta":{}}],"timings":{"cache_n":2,"prompt_n":5,"predicted_n":3}}"#,
    ] {
        let usage = chunks(&[hello, reported]).await.usage().unwrap();
        assert_eq!(
            (usage.prompt_tokens, usage.completion_tokens, usage.estimated),
            (7, 3, false),
            "{reported}"
        );
    }
}

#[tokio::test]
async fn an_error_inside_an_accepted_stream_keeps_its_message_and_its_kind() {
    for (event, code, message) in [
        (
            r#"error: {"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}"#,
            "context",
            "available context size",
        ),
        (
            r#"data: {"error":{"code":400,"message":"Value is not callable: null","type":"invalid_request_error"}}"#,
            "request",
            "Value is not callable",
        ),
        (
            r#"error: {"code":401,"message":"Invalid API Key","type":"authentication_error"}"#,
            "auth",
            "Invalid API Key",
        ),
    ] {
        let outcome = answer_to(stream(format!("{event}\n\n"))).await;
        assert!(outcome.message().contains(message), "{event}: {}", outcome.message());
        assert!(outcome.code().contains(code), "{event}: {}", outcome.code());
    }
}

#[tokio::test]
async fn reasoning_details_are_put_together_and_signed() {
    let outcome = chunks(&[
        r#"{"choices":[{"delta":{"reasoning":"Let ","reasoning_details":[{"type":"reasoning.text","text":"Let ","index":0}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"me","reasoning_details":[{"type":"reasoning.text","text":"me","signature":"s","index":0}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"Hi","reasoning_details":[{"type":"reasoning.encrypted","data":"d","index":1}]},"finish_reason":"stop"}]}"#,
    ])
    .await;
    assert_eq!(outcome.thought(), "Let me");
    let signed = outcome.pieces.iter().find_map(|piece| match piece {
        Piece::ThoughtSignature(signature) => Some(&**signature),
        _ => None,
    });
    assert_eq!(
        signed,
        Some(
            r#"chat.completions:{"reasoning_details":[{"index":0,"signature":"s","text":"Let me","type":"reasoning.text"},{"data":"d","index":1,"type":"reasoning.encrypted"}]}"#
        )
    );
}
