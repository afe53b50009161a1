//! Questions about hosts that no rule opens.

use serde_json::{Value, json};

use super::{Net, OPEN};

/// Runs commands in a session whose host answers each question about a host by `answer`. Returns the
/// questions.
fn asked(net: &Net, commands: &[&str], answer: impl Fn(&Value) -> Value) -> (Vec<Value>, Vec<Value>) {
    for (number, command) in commands.iter().enumerate() {
        let (tool, arguments) = net.command(command);
        net.scene.mock.push(mock_model::Reply::new([net.scene.names.call(
            &format!("c{number}"),
            tool,
            arguments,
        )]));
    }
    net.scene.mock.push(mock_model::Reply::text("done"));
    let mut run = net.scene.worker().start();
    run.write_line(json!({ "messages": [{ "role": "user", "content": "go" }] }));
    let (mut questions, mut lines) = (Vec::new(), Vec::new());
    loop {
        let line = run.json();
        if line["type"] == "control_request" && line.to_string().contains("can_use_tool") {
            let id = line["request_id"].as_str().unwrap().to_owned();
            let result = answer(&line);
            questions.push(line);
            run.write_line(json!({ "type": "control_response", "request_id": id, "response": { "subtype": "success", "result": result } }));
        } else if line["metadata"]["turn"].is_object() {
            lines.push(line);
            break;
        }
    }
    run.finish();
    (questions, lines)
}

fn hosts(questions: &[Value]) -> Vec<String> {
    let host =
        |question: &Value| question["tool"]["arguments"]["host"].as_str().unwrap_or_default().to_owned();
    questions.iter().map(host).collect()
}

#[test]
fn an_unknown_host_is_asked_about_once_for_each_call() {
    // The rule opens another host, so that there is a proxy.
    let Some(net) = Net::new(&["Network(other.example.test)"]) else { return };
    let twice = "curl -sS http://OPEN:PLAIN/; curl -sS http://OPEN:PLAIN/";
    let (questions, _) =
        asked(&net, &[twice, "curl -sS http://OPEN:PLAIN/ ; "], |_| json!({ "behavior": "allow" }));
    assert_eq!(hosts(&questions), [OPEN, OPEN], "{questions:#?}");
    assert_eq!(net.hits(), 3);
    assert_eq!(questions[0]["tool"]["arguments"], json!({ "host": OPEN, "port": net.plain.port() }));
    let name = questions[0]["tool"]["name"].as_str().unwrap_or_default();
    assert!(["network_access", "SandboxNetworkAccess"].contains(&name), "{:#?}", questions[0]);
}

#[test]
fn an_answer_with_a_rule_holds_for_the_session() {
    let Some(net) = Net::new(&["Network(other.example.test)"]) else { return };
    let rule = json!([{ "type": "addRules", "rules": [{ "toolName": "Network", "ruleContent": OPEN }], "behavior": "allow", "destination": "session" }]);
    let answer = json!({ "behavior": "allow", "updatedPermissions": rule });
    let (questions, _) =
        asked(&net, &["curl -sS http://OPEN:PLAIN/", "curl -sS http://OPEN:PLAIN/ ; "], |_| answer.clone());
    assert_eq!(hosts(&questions), [OPEN], "{questions:#?}");
    assert_eq!(net.hits(), 2);
}

#[test]
fn a_refused_host_is_not_reached_and_not_asked_about_again_in_the_call() {
    let Some(net) = Net::new(&["Network(other.example.test)"]) else { return };
    let answer = json!({ "behavior": "deny", "message": "not that one" });
    let (questions, _) =
        asked(&net, &["curl -sS http://OPEN:PLAIN/; curl -sS http://OPEN:PLAIN/"], |_| answer.clone());
    assert_eq!(hosts(&questions), [OPEN], "{questions:#?}");
    assert_eq!(net.hits(), 0);
    let told = net.scene.mock.requests().last().unwrap().full_body().to_string();
    assert!(told.contains("not that one"), "{told}");
}

#[test]
fn an_answer_that_cannot_be_read_is_a_refusal() {
    for answer in [json!({}), json!({ "behavior": "allowed" }), json!("allow"), json!({ "behavior": "ask" })]
    {
        let Some(net) = Net::new(&["Network(other.example.test)"]) else { return };
        asked(&net, &["curl -sS http://OPEN:PLAIN/"], |_| answer.clone());
        assert_eq!(net.hits(), 0, "{answer}");
    }
}

#[test]
fn a_program_cannot_ask_without_end() {
    let Some(net) = Net::new(&["Network(other.example.test)"]) else { return };
    let (questions, _) = asked(
        &net,
        &["for n in $(seq 40); do curl -sS -m 20 http://h$n.OPEN:PLAIN/; done"],
        |_| json!({ "behavior": "deny" }),
    );
    assert_eq!(questions.len(), 16, "{}", questions.len());
}
