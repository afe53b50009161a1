//! What tests may rely on when they talk to the mock.

use crate::client::{ANTHROPIC, Client, OPENAI, prompt};
use mock_model::{MockModel, Reply, ReplyEvent, Request, Step, Wire, gate, sse};

#[test]
fn replies_come_in_the_order_of_the_queue_over_one_kept_alive_connection() {
    let mock = MockModel::with([Reply::text("first"), Reply::text("second")]);
    let mut client = Client::connect(&mock);
    assert!(client.ask("POST", OPENAI, &prompt("a")).body.contains(r#""content":"first""#));
    assert!(client.ask("POST", OPENAI, &prompt("b")).body.contains(r#""content":"second""#));
    let requests = mock.requests();
    assert_eq!(requests.iter().map(|r| r.connection).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(requests.iter().map(|r| r.last_user_text()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(requests[0].header("host"), Some("mock"));
    assert!(requests[0].arrived <= requests[1].arrived && requests[0].arrived_ns <= requests[1].arrived_ns);
}

#[test]
fn each_chunk_is_one_http_chunk_and_arrives_as_it_was_given() {
    let mock = MockModel::with([Reply::new([sse::raw("data: {\"a"), sse::raw("\":1}\n\n"), sse::done()])]);
    let mut client = Client::connect(&mock);
    client.send("POST", OPENAI, "{}");
    let (status, head) = client.head();
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let chunks: Vec<String> = std::iter::from_fn(|| client.chunk()).collect();
    assert_eq!(chunks, ["data: {\"a", "\":1}\n\n", "data: [DONE]\n\n"]);
}

#[test]
fn a_gate_holds_the_reply_until_it_is_opened() {
    let mock = MockModel::with([Reply::new([sse::text("Hel"), gate("half"), sse::text("lo"), sse::done()])]);
    let mut client = Client::connect(&mock);
    client.send("POST", OPENAI, &prompt("hi"));
    mock.reached("half");
    assert!(!mock.has_reached("never"));
    client.head();
    assert!(client.chunk().unwrap().contains("Hel"));
    mock.open("half");
    assert!(client.chunk().unwrap().contains("lo"));
    mock.wait_for_request(0);
}

#[test]
fn the_head_waits_for_the_first_write_unless_it_is_a_step() {
    let mock = MockModel::with([Reply::new([Step::Head, gate("body"), sse::done()])]);
    let mut client = Client::connect(&mock);
    client.send("POST", OPENAI, &prompt("hi"));
    assert_eq!(client.head().0, 200);
    mock.reached("body");
    mock.open("body");
    assert_eq!(client.chunk().as_deref(), Some("data: [DONE]\n\n"));
    assert_eq!(client.chunk(), None);
}

#[test]
fn a_peer_that_leaves_a_held_reply_is_noticed() {
    let mock = MockModel::with([Reply::new([sse::text("Hel"), gate("held")]), Reply::text("next")]);
    let mut client = Client::connect(&mock);
    client.send("POST", OPENAI, &prompt("hi"));
    mock.reached("held");
    drop(client);
    mock.client_gone(0);
    assert_eq!(Client::connect(&mock).ask("POST", OPENAI, &prompt("again")).status, 200);
}

#[test]
#[should_panic(expected = "was played to its end")]
fn waiting_for_a_peer_that_stayed_fails_at_once() {
    let mock = MockModel::with([Reply::text("whole")]);
    let mut client = Client::connect(&mock);
    client.ask("POST", OPENAI, &prompt("hi"));
    mock.client_gone(0);
}

#[test]
fn close_drops_the_connection_in_the_middle_of_the_stream() {
    let mock = MockModel::with([Reply::new([sse::text("Hel"), Step::Close]), Reply::new([Step::Close])]);
    let mut client = Client::connect(&mock);
    client.send("POST", OPENAI, &prompt("hi"));
    let all = client.rest();
    assert!(all.contains("Hel") && !all.ends_with("0\r\n\r\n"), "{all}");
    let mut client = Client::connect(&mock);
    client.send("POST", OPENAI, &prompt("hi"));
    assert_eq!(client.rest(), "", "not even a head");
}

#[test]
fn a_status_is_a_whole_answer_with_its_headers() {
    let headers = vec![("retry-after".to_owned(), "7".to_owned())];
    let mock = MockModel::with([
        Reply::new([Step::Status(429, headers, r#"{"error":{"message":"slow"}}"#.to_owned())]),
        Reply::text("better"),
    ]);
    let mut client = Client::connect(&mock);
    let response = client.ask("POST", OPENAI, &prompt("hi"));
    assert_eq!(response.status, 429);
    assert!(response.head.contains("retry-after: 7") && response.head.contains("application/json"));
    assert_eq!(response.body, r#"{"error":{"message":"slow"}}"#);
    assert_eq!(client.ask("POST", OPENAI, &prompt("hi")).status, 200, "the connection is kept");
}

#[test]
#[should_panic(expected = "cannot write anything else")]
fn a_status_after_a_chunk_is_refused_when_it_is_written_down() {
    Reply::new([sse::text("x"), Step::Status(500, Vec::new(), String::new())]);
}

#[test]
fn a_request_without_a_reply_gets_a_500_that_says_so() {
    let mock = MockModel::start();
    let response = Client::connect(&mock).ask("POST", OPENAI, &prompt("lonely"));
    assert_eq!(response.status, 500);
    assert!(
        response.body.contains("no reply is left") && response.body.contains("lonely"),
        "{}",
        response.body
    );
}

#[test]
fn a_closure_chooses_by_the_request_once_the_queue_is_empty() {
    let mock = MockModel::with([Reply::text("queued")]);
    mock.answer_with(|request: &Request| {
        Some(Reply::text(&format!("you said {}", request.last_user_text())))
    });
    let mut client = Client::connect(&mock);
    assert!(client.ask("POST", OPENAI, &prompt("a")).body.contains("queued"));
    assert!(client.ask("POST", OPENAI, &prompt("b")).body.contains("you said b"));
}

#[test]
fn a_reply_is_complete_in_the_wire_format_of_the_request() {
    let says = [
        ReplyEvent::Thought("hm".to_owned()),
        ReplyEvent::Text("It is ".to_owned()),
        ReplyEvent::Text("cold.".to_owned()),
        ReplyEvent::call("c1", "look", r#"{"at":1}"#),
        ReplyEvent::Usage { input: 7, output: 3 },
    ];
    let reply = Reply::new(says.map(ReplyEvent::step));
    let mock = MockModel::with([reply.clone(), reply]);
    let mut client = Client::connect(&mock);

    let openai = client.ask("POST", OPENAI, &prompt("hi")).body;
    let wanted = [
        r#""reasoning_content":"hm""#,
        r#""content":"It is ""#,
        r#""content":"cold.""#,
        r#""name":"look""#,
        r#""finish_reason":"tool_calls""#,
        r#""total_tokens":10"#,
        "data: [DONE]",
    ];
    assert_in_order(&openai, &wanted);

    let anthropic = client.ask("POST", ANTHROPIC, &prompt("hi")).body;
    let events: Vec<&str> = anthropic.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let wanted = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(events, wanted);
    let wanted = ["thinking_delta", r#""text":"It is ""#, r#""id":"c1""#, r#""stop_reason":"tool_use""#];
    assert_in_order(&anthropic, &wanted);
    assert_eq!(mock.requests()[1].wire, Wire::Anthropic);
}

#[test]
fn coalescing_changes_the_writes_and_not_the_bytes() {
    let steps = || (0..100).map(|i| sse::text(&i.to_string()));
    let mock = MockModel::with([Reply::new(steps()), Reply::new(steps()).coalesced(4096)]);
    let mut client = Client::connect(&mock);
    let mut count = || {
        client.send("POST", OPENAI, "{}");
        client.head();
        let chunks: Vec<String> = std::iter::from_fn(|| client.chunk()).collect();
        (chunks.len(), chunks.concat())
    };
    let (apart, together) = (count(), count());
    assert_eq!(apart.0, 100);
    assert!(together.0 < 10, "{}", together.0);
    assert_eq!(apart.1, together.1);
}

#[test]
fn other_paths_and_broken_bodies_are_refused_and_not_counted() {
    let mock = MockModel::with([Reply::text("fine")]);
    let mut client = Client::connect(&mock);
    assert_eq!(client.ask("GET", "/v1/models", "").status, 404);
    assert_eq!(client.ask("POST", OPENAI, "{").status, 400);
    assert_eq!(mock.unexpected_requests(), ["GET /v1/models", "POST /v1/chat/completions"]);
    assert!(mock.requests().is_empty());
    assert_eq!(client.ask("POST", OPENAI, "{}").status, 200);
}

#[test]
fn a_request_body_may_come_in_chunks() {
    let mock = MockModel::with([Reply::text("fine")]);
    let mut client = Client::connect(&mock);
    let head = format!("POST {OPENAI} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send_raw(format!("{head}5\r\n{{\"a\":\r\n2\r\n1}}\r\n0\r\n\r\n").as_bytes());
    assert_eq!(client.response().status, 200);
    assert_eq!(mock.wait_for_request(0).body["a"], 1);
}

#[test]
fn dropping_the_mock_releases_a_held_peer() {
    let mock = MockModel::with([Reply::new([sse::text("Hel"), gate("forever")])]);
    let mut client = Client::connect(&mock);
    client.send("POST", OPENAI, &prompt("hi"));
    mock.reached("forever");
    drop(mock);
    assert!(client.rest().contains("Hel"));
}

fn assert_in_order(text: &str, wanted: &[&str]) {
    let mut rest = text;
    for piece in wanted {
        let at = rest.find(piece).unwrap_or_else(|| panic!("{piece} is not, or not in its place, in {text}"));
        rest = &rest[at + piece.len()..];
    }
}
