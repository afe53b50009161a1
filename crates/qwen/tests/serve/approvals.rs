//! Permission requests: whoever answers first decides, and everyone sees it.

use mock_model::{MockModel, Reply};
use serde_json::json;

use crate::harness::*;

/// A server whose session waits for permission, the session, its stream and the request's id.
fn waiting(mock: &MockModel) -> (Server, String, Events, String) {
    let server = serve(mock);
    let id = server.session();
    let (_, after) = server.prompt(&id, "go");
    let mut events = server.follow(&id, after);
    let seen = events.until(is_question);
    let request = seen.last().unwrap().json()["request_id"].as_str().unwrap().to_owned();
    (server, id, events, request)
}

#[test]
fn an_approval_is_listed_until_it_is_answered_and_the_second_answer_learns_the_first() {
    let mock = MockModel::with([asks("c1"), Reply::text("Done.")]);
    let (server, id, mut events, request) = waiting(&mock);
    let listed = server.get("/api/approvals").json();
    assert_eq!(listed["approvals"][0]["id"], request.as_str());
    assert_eq!(listed["approvals"][0]["session_id"], id.as_str());
    assert_eq!(listed["approvals"][0]["tool"]["arguments"]["command"], "touch c1.txt");
    assert_eq!(server.get(&format!("/api/sessions/{id}")).json()["status"], "waiting");
    let path = format!("/api/approvals/{request}");
    assert_eq!(server.post(&path, json!({"decision": "allow"})).status, 200);
    let second = server.post(&path, json!({"decision": "deny"}));
    assert_eq!((second.status, second.json()["error"]["decision"].as_str()), (409, Some("allow")));
    let rest = events.until(is_end);
    let told = rest.iter().any(|event| {
        event.json()["value"]
            == json!({"kind": "approval_decided", "request_id": request, "decision": "allow"})
    });
    assert!(told, "{rest:#?}");
    assert!(
        std::path::Path::new(
            &server.get(&format!("/api/sessions/{id}")).json()["workspace"].as_str().unwrap()
        )
        .join("c1.txt")
        .exists()
    );
    assert_eq!(server.get("/api/approvals").json(), json!({"approvals": []}));
}

#[test]
fn a_denial_carries_its_reason_to_the_model() {
    let mock = MockModel::with([asks("c1"), Reply::text("Then not.")]);
    let (server, id, mut events, request) = waiting(&mock);
    let body = json!({"decision": "deny", "message": "not on a Friday"});
    assert_eq!(server.post(&format!("/api/approvals/{request}"), body).status, 200);
    let rest = events.until(is_end);
    let denials = rest.last().unwrap().json()["metadata"]["turn"]["permission_denials"].clone();
    assert_eq!(denials.as_array().unwrap().len(), 1);
    assert!(mock.wait_for_request(1).body.to_string().contains("not on a Friday"));
    let workspace =
        server.get(&format!("/api/sessions/{id}")).json()["workspace"].as_str().unwrap().to_owned();
    assert!(!std::path::Path::new(&workspace).join("c1.txt").exists());
}

#[test]
fn changed_input_is_what_runs() {
    let mock = MockModel::with([asks("c1"), Reply::text("Done.")]);
    let (server, id, mut events, request) = waiting(&mock);
    let body = json!({"decision": "allow", "updated_input": {"command": "touch edited.txt"}});
    assert_eq!(server.post(&format!("/api/approvals/{request}"), body).status, 200);
    events.until(is_end);
    let workspace =
        server.get(&format!("/api/sessions/{id}")).json()["workspace"].as_str().unwrap().to_owned();
    let workspace = std::path::Path::new(&workspace);
    assert!(workspace.join("edited.txt").exists() && !workspace.join("c1.txt").exists());
}

#[test]
fn a_cancelled_turn_withdraws_its_approvals() {
    let mock = MockModel::with([asks("c1")]);
    let (server, id, mut events, request) = waiting(&mock);
    server.post(&format!("/api/sessions/{id}/cancel"), json!({}));
    assert_eq!(status(&events.until(is_end)), "cancelled");
    let late = server.post(&format!("/api/approvals/{request}"), json!({"decision": "allow"}));
    assert_eq!((late.status, late.json()["error"]["decision"].as_str()), (409, Some("withdrawn")));
}

#[test]
fn an_approval_timeout_denies() {
    let mock = MockModel::with([asks("c1"), Reply::text("Then not.")]);
    let server = start(&program(&mock).args(["--approval-timeout", "0.2"]));
    let id = server.session();
    let events = server.turn(&id, "go");
    let turn = events.last().unwrap().json()["metadata"]["turn"].clone();
    assert_eq!(turn["permission_denials"].as_array().unwrap().len(), 1, "{turn}");
}
