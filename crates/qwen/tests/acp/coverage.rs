//! The coverage table of `docs/acp.md` names tests that exist, and the entry for the registry of agents is valid.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The words in backticks of a line.
fn code(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// The rows of the coverage table: what is covered, and the tests.
fn rows(page: &str) -> Vec<(&str, &str)> {
    let (_, table) = page.split_once("\n## Coverage\n").unwrap();
    table
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.trim_matches('|').rsplit_once('|').unwrap())
        .collect()
}

/// Fails unless `name` is the test of a module (`module::test`) or a case of the official clients (`file: case`).
fn check_test(name: &str) {
    if let Some((file, case)) = name.split_once(": ") {
        let text = read(&format!("tests/acp/{file}"));
        assert!(text.contains(case), "tests/acp/{file} has no case {case:?}");
        return;
    }
    let (module, test) = name.split_once("::").unwrap_or_else(|| panic!("{name:?} names no test"));
    let text = read(&format!("crates/qwen/tests/acp/{module}.rs"));
    let head = format!("fn {test}(");
    let at = text.find(&head).unwrap_or_else(|| panic!("there is no test {name}"));
    let before = text[..at].trim_end();
    assert!(
        before.ends_with(']') && before.rsplit('\n').take(3).any(|line| line.trim() == "#[test]"),
        "{name}"
    );
}

#[test]
fn every_row_of_the_coverage_table_names_tests_that_exist() {
    let page = read("docs/acp.md");
    let rows = rows(&page);
    assert!(rows.len() >= 60, "{} rows", rows.len());
    let mut seen = BTreeSet::new();
    for (what, tests) in rows {
        assert!(seen.insert(what.trim().to_owned()), "{what} is listed twice");
        let names = code(tests);
        assert!(!names.is_empty(), "{what} names no test");
        for name in names {
            check_test(name);
        }
    }
}

/// Every method and every kind of update that this program writes or reads has a row.
#[test]
fn every_method_and_every_kind_of_update_has_a_row() {
    let page = read("docs/acp.md");
    let covered: BTreeSet<&str> = rows(&page).into_iter().flat_map(|(what, _)| code(what)).collect();
    for method in [
        "initialize",
        "authenticate",
        "session/new",
        "session/load",
        "session/resume",
        "session/list",
        "session/delete",
        "session/close",
        "session/prompt",
        "session/set_mode",
        "session/set_config_option",
        "session/cancel",
        "session/update",
        "session/request_permission",
        "elicitation/create",
        "$/cancel_request",
        "_session/steering",
    ] {
        assert!(covered.contains(method), "no row covers {method}");
    }
    for kind in [
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "available_commands_update",
        "current_mode_update",
        "config_option_update",
        "session_info_update",
        "usage_update",
        "notice",
        "compaction_update",
    ] {
        assert!(covered.contains(kind), "no row covers {kind}");
    }
    for reason in ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"] {
        assert!(covered.contains(reason), "no row covers {reason}");
    }
}

#[test]
fn the_entry_for_the_registry_of_agents_is_valid() {
    let manifest: Value = serde_json::from_str(&read("packaging/acp-registry/qwen/agent.json")).unwrap();
    let text = |pointer: &str| {
        let found = manifest.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_else(|| panic!("agent.json has no {pointer}")).to_owned()
    };
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(text("/id"), "qwen", "the id is the name of the folder");
    assert_eq!((text("/version").as_str(), text("/license").as_str()), (version, "Apache-2.0"));
    assert!(!text("/name").is_empty() && (10..200).contains(&text("/description").len()));
    let known = [
        "id",
        "name",
        "version",
        "description",
        "repository",
        "website",
        "authors",
        "license",
        "icon",
        "distribution",
    ];
    assert!(manifest.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{manifest}");
    // The packages exist under these names, with commands that `npx` and `uvx` run.
    let node: Value = serde_json::from_str(&read("sdk/typescript/package.json")).unwrap();
    assert_eq!(text("/distribution/npx/package"), format!("{}@{version}", node["name"].as_str().unwrap()));
    assert_eq!(node["version"], version);
    let bin = node["bin"]["qwen"].as_str().unwrap();
    assert!(repository().join("sdk/typescript").join(bin).is_file(), "{bin}");
    assert_eq!(text("/distribution/uvx/package"), format!("qwen-agent-sdk=={version}"));
    let python = read("sdk/python/pyproject.toml");
    assert!(
        python.contains("\nname = \"qwen-agent-sdk\"\n") && python.contains("\nqwen-agent-sdk = \""),
        "{python}"
    );
    for runner in ["npx", "uvx"] {
        assert_eq!(manifest["distribution"][runner]["args"], serde_json::json!(["--acp"]));
    }
}

#[test]
fn the_icon_is_16_by_16_and_takes_the_colour_of_its_surroundings() {
    let icon = read("packaging/acp-registry/qwen/icon.svg");
    assert!(icon.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    for part in ["width=\"16\"", "height=\"16\"", "viewBox=\"0 0 16 16\"", "currentColor"] {
        assert!(icon.contains(part), "{part}");
    }
    for attribute in ["fill=\"", "stroke=\""] {
        for value in icon.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(["none", "currentColor"].contains(&value), "{attribute}{value}");
        }
    }
    assert!(!icon.contains("<script") && !icon.contains("href") && icon.len() < 4096);
}
