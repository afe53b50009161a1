//! Settings that change what tools and commands do, each seen to do it.

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{ask, qwen, say, until_end, worker, write};
use crate::listener::Listener;

fn asked(mock: &MockModel, settings: &Value) -> Program {
    let program = qwen().with_model(mock).args(["-p", "Go", "--model", "mock"]);
    write(program.qwen_home_path().join("settings.json"), settings.to_string());
    program
}

/// What the model is told of the one call that it makes.
fn told(program: &Program, mock: &MockModel) -> String {
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    mock.requests()[1].messages().last().unwrap()["content"].to_string()
}

fn calling(name: &str, arguments: &Value) -> MockModel {
    MockModel::with([Reply::call("c1", name, &arguments.to_string()), Reply::text("Done.")])
}

#[test]
fn a_private_address_is_visited_only_where_the_users_settings_list_it() {
    let listener = Listener::new(|_| ("200 OK\r\nContent-Type: text/plain".into(), "the inner page".into()));
    let host = format!("127.0.0.1:{}", listener.port);
    for (settings, reached) in [
        (json!({}), false),
        (json!({"tools": {"webFetch": {"allowPrivateHosts": [host]}}}), true),
        (json!({"tools": {"webFetch": {"allowPrivateHosts": ["127.0.0.1:1"]}}}), false),
    ] {
        let before = listener.asked().len();
        let mock = calling("web_fetch", &json!({"url": listener.url("/"), "prompt": "p"}));
        let said = told(&asked(&mock, &settings).arg("--yolo"), &mock);
        assert_eq!(said.contains("the inner page"), reached, "{said}");
        assert_eq!(listener.asked().len() > before, reached, "{settings}");
    }
    // A workspace, even a trusted one, cannot open this door.
    let before = listener.asked().len();
    let mock = calling("web_fetch", &json!({"url": listener.url("/"), "prompt": "p"}));
    let program = asked(&mock, &json!({})).args(["--yolo", "--trust-workspace"]);
    let theirs = json!({"tools": {"webFetch": {"allowPrivateHosts": [host]}}});
    write(program.cwd_path().join(".qwen/settings.json"), theirs.to_string());
    assert!(told(&program, &mock).contains("is not visited"));
    assert_eq!(listener.asked().len(), before);
}

#[test]
fn a_redirect_to_another_host_is_judged_like_a_call() {
    let there = Listener::new(|_| ("200 OK\r\nContent-Type: text/plain".into(), "the other page".into()));
    let target = format!("http://localhost:{}/", there.port);
    let here = Listener::new(move |_| (format!("302 Found\r\nLocation: {target}"), String::new()));
    let hosts = [format!("127.0.0.1:{}", here.port), format!("localhost:{}", there.port)];
    for (flags, reached) in [
        (&["--yolo"][..], true),
        (&["--allowed-tools", "WebFetch(domain:127.0.0.1)"], false),
        (&["--allowed-tools", "WebFetch(domain:127.0.0.1),WebFetch(domain:localhost)"], true),
        (&["--yolo", "--exclude-tools", "WebFetch(domain:localhost)"], false),
    ] {
        let before = there.asked().len();
        let mock = calling("web_fetch", &json!({"url": here.url("/"), "prompt": "p"}));
        let settings = json!({"tools": {"webFetch": {"allowPrivateHosts": hosts}}});
        let said = told(&asked(&mock, &settings).args(flags), &mock);
        assert_eq!(said.contains("the other page"), reached, "{flags:?}: {said}");
        assert_eq!(there.asked().len() > before, reached, "{flags:?}");
    }
}

#[test]
fn facts_are_remembered_in_the_first_memory_file_and_told_in_the_next_session() {
    for (settings, name) in
        [(json!({}), "QWEN.md"), (json!({"context": {"fileName": ["notes.txt", "HOUSE.md"]}}), "HOUSE.md")]
    {
        for (scope, place) in [("user", "home"), ("project", "cwd")] {
            let mock = calling("save_memory", &json!({"fact": "Tabs, not spaces.", "scope": scope}));
            mock.push(Reply::text("Hello."));
            let program = asked(&mock, &settings).arg("--yolo");
            told(&program, &mock);
            let directory =
                if place == "home" { program.qwen_home_path() } else { program.cwd_path().to_owned() };
            let text = std::fs::read_to_string(directory.join(name)).unwrap();
            assert!(text.contains("- Tabs, not spaces."), "{text}");
            program.run();
            let system = mock.requests()[2].messages()[0]["content"].to_string();
            assert!(system.contains("Tabs, not spaces."), "{system}");
        }
    }
}

#[test]
fn memory_files_have_the_names_and_the_size_that_the_settings_say() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    let program = asked(&mock, &json!({"context": {"fileName": "HOUSE.md", "maxFileSize": 10}}));
    write(program.cwd_path().join("HOUSE.md"), "0123456789abcdef");
    write(program.cwd_path().join("QWEN.md"), "the usual one");
    program.run();
    let system = mock.requests()[0].messages()[0]["content"].to_string();
    assert!(
        system.contains("0123456789") && !system.contains("9a") && !system.contains("the usual one"),
        "{system}"
    );
    let bad = asked(&MockModel::with([]), &json!({"context": {"fileName": "../x.md"}})).run();
    assert_eq!(bad.code, Some(52), "{bad:?}");
    assert!(bad.stderr.contains("context.fileName"), "{bad:?}");
}

#[test]
fn a_command_without_a_time_out_of_its_own_has_that_of_the_settings() {
    let settings = json!({"tools": {"shell": {"timeoutMs": 200}}});
    let mock = calling("run_shell_command", &json!({"command": "sleep 1000"}));
    let said = told(&asked(&mock, &settings).arg("--yolo"), &mock);
    assert!(said.contains("timed out after 200 ms"), "{said}");
    let zero = asked(&MockModel::with([]), &json!({"tools": {"shell": {"timeoutMs": 0}}})).run();
    assert_eq!(zero.code, Some(52), "{zero:?}");
    assert!(zero.stderr.contains("tools.shell.timeoutMs") && zero.stderr.contains("above 0"), "{zero:?}");
}

#[test]
fn the_context_window_of_the_settings_is_the_one_that_hosts_are_told_and_that_is_kept_to() {
    let mock =
        MockModel::with([Reply::text(&"long ".repeat(400)), Reply::text("SUMMARY"), Reply::text("Three.")]);
    let program = worker(&mock);
    write(
        program.qwen_home_path().join("settings.json"),
        json!({"model": {"contextWindow": 18}}).to_string(),
    );
    let mut run = program.start();
    let usage = ask(&mut run, &json!({"subtype": "get_context_usage"}));
    assert_eq!(usage["response"]["contextWindowSize"], 18, "{usage}");
    let models = ask(&mut run, &json!({"subtype": "get_available_models"}));
    assert_eq!(models["response"]["models"][0]["contextWindowSize"], 18, "{models}");
    say(&mut run, &"words ".repeat(300));
    until_end(&mut run);
    say(&mut run, "go on");
    let lines = until_end(&mut run);
    assert!(lines.iter().any(|line| line["event"] == "ChatCompressed"), "{lines:?}");
    let zero = qwen().args(["config", "--settings", r#"{"model":{"contextWindow":0}}"#]).run();
    assert_eq!(zero.code, Some(52), "{zero:?}");
}

#[test]
fn a_command_that_is_switched_off_is_not_there() {
    for (flags, settings) in [
        (&["--disabled-slash-commands", "stats,/quit"][..], json!({})),
        (&[], json!({"slashCommands": {"disabled": ["stats", "quit"]}})),
    ] {
        let mock = MockModel::with([]);
        let program = worker(&mock).args(flags);
        write(program.qwen_home_path().join("settings.json"), settings.to_string());
        let mut run = program.start();
        let listed =
            ask(&mut run, &json!({"subtype": "supported_commands"}))["response"]["commands"].to_string();
        assert!(!listed.contains("stats") && !listed.contains("quit") && listed.contains("help"), "{listed}");
        for command in ["/stats", "/exit", "/quit"] {
            say(&mut run, command);
            let answer = run.json_until(|line| line["type"] == "result/command").pop().unwrap();
            assert_eq!(answer["result"]["level"], "error", "{answer}");
        }
        say(&mut run, "/help");
        let help = run.json_until(|line| line["type"] == "result/command").pop().unwrap();
        assert!(!help["result"]["content"].as_str().unwrap().contains("stats"), "{help}");
    }
}
