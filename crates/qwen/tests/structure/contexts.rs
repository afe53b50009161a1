//! Contexts hold their parents explicitly.

use crate::facts::FACTS;

/// True for the types that hold what lives for a process, a session, a turn or a call.
fn is_context(name: &str) -> bool {
    ["Context", "Services", "Resources"].iter().any(|ending| name.ends_with(ending))
}

#[test]
fn no_context_dereferences_to_another() {
    let between: Vec<String> = FACTS
        .dereferences
        .iter()
        .filter(|deref| is_context(&deref.from) || is_context(&deref.to))
        .map(|deref| format!("{}: {} to {}", deref.place, deref.from, deref.to))
        .collect();
    assert!(between.is_empty(), "{between:#?}");
}

/// Each context with its parents, the next one first.
const LINEAGES: &[(&str, &[&str])] = &[
    ("TurnContext", &["SessionContext", "ProcessServices"]),
    ("SessionContext", &["ProcessServices"]),
    ("CallContext", &["SessionResources"]),
    ("ProcessContext", &["ProcessServices"]),
];

#[test]
fn no_field_of_a_context_has_the_name_of_a_parents_field() {
    let fields = |name: &str| {
        let context = FACTS.structs.iter().find(|found| found.name == name);
        context.unwrap_or_else(|| panic!("no struct {name}")).fields.clone()
    };
    for (name, parents) in LINEAGES {
        for parent in *parents {
            let shadowing: Vec<String> =
                fields(parent).into_iter().filter(|field| fields(name).contains(field)).collect();
            assert!(shadowing.is_empty(), "{name} shadows {parent}: {shadowing:?}");
        }
    }
}
