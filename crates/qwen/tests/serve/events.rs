//! Followers: replay, reconnect, several readers.

use mock_model::process::Signal;
use mock_model::{MockModel, Reply, gate, sse};

use crate::harness::*;

#[test]
fn three_readers_of_one_session_see_the_same_events() {
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let server = serve(&mock);
    let id = server.session();
    let mut readers: Vec<Events> = (0..3).map(|_| server.follow(&id, 0)).collect();
    server.prompt(&id, "a");
    let seen: Vec<Vec<Event>> = readers.iter_mut().map(|reader| reader.until(is_end)).collect();
    assert!(seen[0] == seen[1] && seen[1] == seen[2]);
    // Another client drives now; the readers stay.
    server.prompt(&id, "b");
    let seen: Vec<Vec<Event>> = readers.iter_mut().map(|reader| reader.until(is_end)).collect();
    assert_eq!(text(&seen[0]), "Two.");
    assert!(seen[0] == seen[1] && seen[1] == seen[2]);
}

#[test]
fn a_reader_that_reconnects_anywhere_misses_and_repeats_nothing() {
    let mock = MockModel::with([asks("c1"), Reply::text("Done and done.")]);
    let server = start(&program(&mock).args(["--", "--approval-mode", "yolo"]));
    let id = server.session();
    let whole = server.turn(&id, "go");
    assert!(whole.len() > 8);
    for cut in 0..whole.len() {
        let mut joined = whole[..cut].to_vec();
        let after = joined.last().map_or(0, Event::number);
        joined.extend(server.follow(&id, after).until(is_end));
        assert_eq!(joined, whole, "cut after {cut}");
    }
}

#[test]
fn a_reader_cut_during_the_turn_continues_live() {
    let pieces = (0..40).flat_map(|at| [gate(&format!("g{at}")), sse::text(&format!("{at} "))]);
    let steps = [sse::role()].into_iter().chain(pieces).chain([sse::finish("stop"), sse::done()]);
    let mock = MockModel::with([Reply::new(steps)]);
    let server = serve(&mock);
    let id = server.session();
    let (_, after) = server.prompt(&id, "count");
    let mut uncut = server.follow(&id, after);
    let mut joined: Vec<Event> = Vec::new();
    for at in 0..40 {
        mock.open(&format!("g{at}"));
        let mut reader = server.follow(&id, joined.last().map_or(after, Event::number));
        let piece = format!("{at} ");
        joined.extend(reader.until(|event| event.json()["choices"][0]["delta"]["content"] == piece.as_str()));
    }
    joined.extend(server.follow(&id, joined.last().unwrap().number()).until(is_end));
    assert_eq!(joined, uncut.until(is_end));
}

#[test]
fn the_events_of_all_sessions_are_one_stream() {
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    let server = serve(&mock);
    let mut all = server.stream("/api/events", None);
    let (a, b) = (server.session(), server.session());
    server.turn(&a, "x");
    server.turn(&b, "y");
    let first = all.until(is_end);
    let second = all.until(is_end);
    assert!(first.iter().all(|event| event.id.as_deref().unwrap().starts_with(&a)));
    assert!(second.iter().all(|event| event.id.as_deref().unwrap().starts_with(&b)));
    let last = first.last().unwrap().id.clone().unwrap();
    let again = server.stream("/api/events", Some(&last)).until(is_end);
    assert_eq!(again, second);
    let unknown = format!("{a}:9999");
    let mut resumed = server.stream("/api/events", Some(&unknown));
    let snapshot = resumed.next().unwrap();
    assert_eq!(snapshot.name.as_deref(), Some("snapshot"));
    assert_eq!(snapshot.json()["sessions"].as_array().unwrap().len(), 2);
    server.turn(&a, "z");
    assert_eq!(text(&resumed.until(is_end)), "Three.");
}

#[test]
fn the_events_of_all_sessions_continue_across_restarts_and_kills() {
    let replies = (0..8).map(|turn| Reply::text(&format!("Turn {turn}.")));
    let mock = MockModel::with(replies);
    let program = program(&mock);
    let mut server = start(&program);
    let ids = [server.session(), server.session()];
    let mut joined: Vec<Event> = Vec::new();
    for turn in 0..8 {
        let after = joined.last().map_or("0".to_owned(), |event| event.id.clone().unwrap());
        let mut all = server.stream("/api/events", Some(&after));
        let (prompt, _) = server.prompt(&ids[turn % 2], "go");
        let mut ended = all.until(|event| is_end(event) && event.data.contains(&prompt));
        // Some readers leave before they have everything.
        if turn % 3 == 1 {
            ended.truncate(ended.len() / 2);
        }
        joined.extend(ended);
        let signal = if turn % 2 == 0 { Signal::TERM } else { Signal::KILL };
        server.run.signal(signal);
        server.run.wait();
        server = start(&program);
    }
    let last = joined.last().unwrap().id.clone().unwrap();
    let uncut = server.stream("/api/events", Some("0")).until(|event| event.id.as_ref() == Some(&last));
    assert_eq!(joined, uncut);
    for id in &ids {
        let of_session = joined.iter().filter_map(|event| event.id.as_deref()?.strip_prefix(id.as_str()));
        let numbers: Vec<u64> = of_session.map(|number| number[1..].parse().unwrap()).collect();
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
    }
}

#[test]
fn an_id_that_was_never_assigned_gets_a_snapshot_and_then_live_events() {
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let server = serve(&mock);
    let id = server.session();
    let last = server.turn(&id, "remember this").last().unwrap().number();
    let mut reader = server.follow(&id, 100_000);
    let snapshot = reader.next().unwrap();
    assert_eq!((snapshot.name.as_deref(), snapshot.number()), (Some("snapshot"), last));
    let messages = snapshot.json()["messages"].clone();
    assert_eq!(messages.as_array().unwrap().last().unwrap()["content"], "One.");
    assert!(messages.to_string().contains("remember this"));
    server.prompt(&id, "more");
    let next = reader.until(is_end);
    assert_eq!((next[0].number(), text(&next).as_str()), (last + 1, "Two."));
}

#[test]
fn a_stream_ends_when_its_session_is_deleted() {
    let mock = MockModel::with([Reply::text("One.")]);
    let server = serve(&mock);
    let id = server.session();
    server.turn(&id, "a");
    let mut reader = server.follow(&id, 0);
    reader.until(is_end);
    assert_eq!(server.send("DELETE", &format!("/api/sessions/{id}"), "").status, 204);
    assert_eq!(reader.next().unwrap().name.as_deref(), Some("deleted"));
    assert_eq!(reader.next(), None);
}

#[test]
fn without_partial_messages_each_message_is_one_event() {
    let mock = MockModel::with([Reply::new([
        sse::role(),
        sse::text("One "),
        sse::text("two."),
        sse::finish("stop"),
        sse::done(),
    ])]);
    let server = serve(&mock);
    let id = server.session();
    let chunks = server.turn(&id, "a");
    let path = format!("/api/sessions/{id}/events?partial=false");
    let whole = server.stream(&path, Some("0")).until(is_end);
    let messages: Vec<_> =
        whole.iter().map(Event::json).filter(|line| line["object"] == "chat.completion").collect();
    assert_eq!(messages.last().unwrap()["choices"][0]["message"]["content"], "One two.");
    assert!(whole.len() < chunks.len() && whole.iter().all(|event| !event.data.contains("chunk")));
    assert_eq!(whole.last().unwrap().number(), chunks.last().unwrap().number());
    // A reconnect anywhere gives the rest of the same events.
    for cut in 0..whole.len() {
        let after = whole[..cut].last().map_or(0, Event::number).to_string();
        assert_eq!(server.stream(&path, Some(&after)).until(is_end), whole[cut..], "cut after {cut}");
    }
}
