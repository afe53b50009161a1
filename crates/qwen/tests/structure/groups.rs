//! The groups of events that a pattern names by a macro of `qwen-events`.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use syn::Item;

use crate::root;

static GROUPS: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    let path = root().join("crates/qwen-events/src/event_groups.rs");
    let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for item in &file.items {
        let Item::Macro(item) = item else { panic!("only macros are expected") };
        let tokens = item.mac.tokens.to_string();
        let words: Vec<&str> = tokens
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .collect();
        let mut variants = Vec::new();
        for (at, word) in words.iter().enumerate() {
            if at > 0 && words[at - 1] == "Body" {
                variants.push((*word).to_owned());
            }
            // A group may contain those that are defined before it.
            variants.extend(groups.get(*word).into_iter().flatten().cloned());
        }
        groups.insert(item.ident.as_ref().unwrap().to_string(), variants);
    }
    groups
});

/// The events that a macro in a pattern stands for; none if it is not a group of events.
pub fn members(mac: &syn::Macro) -> &'static [String] {
    let name = mac.path.segments.last().unwrap().ident.to_string();
    GROUPS.get(&name).map_or(&[], Vec::as_slice)
}

#[test]
fn a_group_contains_the_groups_that_it_names() {
    let all = |text: &str| members(&syn::parse_str(text).unwrap()).to_vec();
    let inner = all("channel_events!()");
    assert!(inner.len() > 3, "{inner:?}");
    assert_eq!(all("outside_turns!()"), [vec!["CommandResult".to_owned()], inner].concat());
    assert!(all("matches!()").is_empty());
}
