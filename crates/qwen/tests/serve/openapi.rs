//! `/api/openapi.json` describes the routes that exist.

use mock_model::MockModel;
use serde_json::Value;

use crate::harness::*;

#[test]
fn the_document_is_the_committed_one() {
    let mock = MockModel::start();
    let server = serve(&mock);
    let served = server.get("/api/openapi.json").json();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/openapi.json");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(path, format!("{served:#}\n")).unwrap();
    }
    let committed: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(served, committed, "run the test with UPDATE_SCHEMAS=1");
}

#[test]
fn every_route_of_the_document_exists() {
    let mock = MockModel::start();
    let server = serve(&mock);
    let document = server.get("/api/openapi.json").json();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let id = server.session();
            let target = path.replace("{session}", &id).replace("{approval}", "a").replace("{prompt}", "p");
            if path.ends_with("/events") {
                server.stream(&target, None);
                continue;
            }
            let body = if method == "get" || method == "delete" { "" } else { "{}" };
            let answer = server.send(&method.to_uppercase(), &target, body);
            let is_missing = answer.status == 404 && answer.body.contains("no such route");
            assert!(!is_missing && answer.status != 405, "{method} {target} {answer:?}");
        }
    }
}
