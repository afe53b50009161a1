//! `save_memory`: what is remembered, where, and what never is.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod fixture;

use fixture::Fixture;
use futures_util::future::join_all;
use qwen_events::Confirmation;
use qwen_redact::Redactor;
use qwen_tools::MemoryFiles;
use serde_json::json;

/// A session whose memory files are in a directory of its own, which does not exist yet.
fn remembering() -> (Fixture, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let files = MemoryFiles {
        user: Some(home.path().join("qwen/QWEN.md")),
        project: Some(home.path().join("p/QWEN.md")),
    };
    let fixture = Fixture::with(|resources| {
        resources.memory = files;
        resources.redactor = std::sync::Arc::new(Redactor::new(["corridor-1234"]));
    });
    (fixture, home)
}

#[tokio::test]
async fn facts_are_remembered_once_each_for_the_user_or_the_project() {
    let (fixture, home) = remembering();
    let read = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
    let saved = fixture.call("save_memory", json!({"fact": "- Likes\n tea."})).await;
    assert_eq!(saved.error_code, None, "{}", saved.text);
    assert!(saved.text.starts_with("Remembered in ") && saved.text.ends_with("Likes tea."), "{}", saved.text);
    fixture.call("save_memory", json!({"fact": "Uses tabs."})).await;
    let again = fixture.call("save_memory", json!({"fact": "likes TEA."})).await;
    assert!(again.text.ends_with("says so already."), "{}", again.text);
    assert_eq!(read("qwen/QWEN.md"), "## Qwen Added Memories\n\n- Likes tea.\n- Uses tabs.\n");
    fixture.call("save_memory", json!({"fact": "Built with make.", "scope": "project"})).await;
    assert_eq!(read("p/QWEN.md"), "## Qwen Added Memories\n\n- Built with make.\n");
}

#[tokio::test]
async fn saving_a_memory_keeps_the_rest_of_the_file() {
    let (fixture, home) = remembering();
    std::fs::create_dir(home.path().join("qwen")).unwrap();
    let real = home.path().join("dotfiles.md");
    std::fs::write(&real, "\u{feff}# Mine\r\n\r\n## Qwen Added Memories\r\n- Old.\r\n\r\n# More\r\n")
        .unwrap();
    std::os::unix::fs::symlink(&real, home.path().join("qwen/QWEN.md")).unwrap();
    let saved = fixture.call("save_memory", json!({"fact": "New."})).await;
    assert_eq!(saved.error_code, None, "{}", saved.text);
    assert_eq!(
        std::fs::read_to_string(&real).unwrap(),
        "\u{feff}# Mine\r\n\r\n## Qwen Added Memories\r\n- Old.\r\n- New.\r\n\r\n# More\r\n"
    );
    assert!(home.path().join("qwen/QWEN.md").is_symlink());
    std::fs::write(&real, b"\xff\xfe").unwrap();
    let refused = fixture.call("save_memory", json!({"fact": "New."})).await;
    assert_eq!(refused.error_code, Some("not_text"));
    assert_eq!(std::fs::read(&real).unwrap(), b"\xff\xfe");
}

#[tokio::test]
async fn facts_saved_at_the_same_time_are_all_there() {
    let (fixture, home) = remembering();
    let facts: Vec<String> = (0..20).map(|n| format!("Fact {n}.")).collect();
    let saved = join_all(facts.iter().map(|fact| fixture.call("save_memory", json!({"fact": fact})))).await;
    assert!(saved.iter().all(|outcome| outcome.error_code.is_none()));
    let text = std::fs::read_to_string(home.path().join("qwen/QWEN.md")).unwrap();
    assert!(facts.iter().all(|fact| text.contains(&format!("- {fact}\n"))), "{text}");
    let left: Vec<_> = std::fs::read_dir(home.path().join("qwen")).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file is left");
}

#[tokio::test]
async fn secrets_and_invalid_texts_are_not_saved() {
    let (fixture, home) = remembering();
    for (arguments, words) in [
        (json!({"fact": " \n"}), "is empty"),
        (json!({"fact": "- #"}), "says nothing"),
        (json!({"fact": "x".repeat(2_001)}), "longer than 2000 characters"),
        (json!({"fact": "Always obey\u{e0041}."}), "cannot be seen"),
        (json!({"fact": "The key is corridor-1234."}), "holds a secret"),
        (json!({"fact": "x", "scope": "world"}), "must be user or project"),
        (json!({}), "is missing"),
    ] {
        let refused = fixture.call("save_memory", arguments.clone()).await;
        assert_eq!(refused.error_code, Some("invalid_arguments"), "{arguments}");
        assert!(refused.text.contains(words), "{arguments}: {}", refused.text);
    }
    assert!(!home.path().join("qwen").exists());
    let nowhere = Fixture::new().call("save_memory", json!({"fact": "x"})).await;
    assert_eq!(nowhere.error_code, Some("no_memory"), "{}", nowhere.text);
}

#[tokio::test]
async fn the_confirmation_shows_the_change() {
    let (fixture, home) = remembering();
    let asked = |fixture: &Fixture| match fixture.confirmation("save_memory", &json!({"fact": "Likes tea."}))
    {
        Some(Confirmation::Edit(diff)) => diff,
        other => panic!("{other:?}"),
    };
    let first = asked(&fixture);
    assert_eq!((&*first.modified, first.original), ("## Qwen Added Memories\n\n- Likes tea.\n", None));
    assert!(!home.path().join("qwen").exists(), "asking changes nothing");
    fixture.call("save_memory", json!({"fact": "Uses tabs."})).await;
    assert!(asked(&fixture).diff.contains("+- Likes tea."));
}
