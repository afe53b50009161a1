//! Every consumer of events decides about every event: a match that tells several of them apart has no
//! catch-all arm, so that a new event does not compile until each consumer handles it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use syn::visit::Visit;
use syn::{ExprMatch, Pat};

use crate::{groups, root, sources};

/// Folders whose `Body` is a line of the loom wire, not an event.
const OTHER_BODIES: &[&str] = &["crates/qwen-dialects/src/check/loom/"];

/// The enums whose consumers decide about every variant.
const EXHAUSTIVE: &[&str] = &["Body", "In", "ControlBody", "SessionEvent"];

/// A match over fewer variants looks for these and ignores the others by design.
const LOOKS_FOR: usize = 3;

/// How many arms catch all the events that their match does not name.
#[derive(Default)]
struct CatchAlls {
    count: usize,
}

impl<'ast> Visit<'ast> for CatchAlls {
    fn visit_expr_match(&mut self, node: &'ast ExprMatch) {
        let mut paths = VariantPaths::default();
        for arm in &node.arms {
            paths.visit_pat(&arm.pat);
        }
        if paths.variants.len() > LOOKS_FOR {
            let catch_alls = node.arms.iter().filter(|arm| arm.guard.is_none() && is_catch_all(&arm.pat));
            self.count += catch_alls.count();
        }
        syn::visit::visit_expr_match(self, node);
    }
}

/// The variants of these enums that patterns name.
#[derive(Default)]
struct VariantPaths {
    variants: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for VariantPaths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut names = path.segments.iter().rev().map(|segment| segment.ident.to_string());
        if let (Some(variant), Some(of)) = (names.next(), names.next())
            && EXHAUSTIVE.contains(&of.as_str())
        {
            self.variants.insert(variant);
        }
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.variants.extend(groups::members(mac).iter().cloned());
    }
}

fn is_catch_all(pattern: &Pat) -> bool {
    match pattern {
        Pat::Wild(_) => true,
        Pat::Ident(ident) => {
            ident.subpat.is_none() && ident.ident.to_string().starts_with(char::is_lowercase)
        }
        Pat::Tuple(tuple) => tuple.elems.iter().all(is_catch_all),
        _ => false,
    }
}

#[test]
fn a_catch_all_arm_next_to_a_group_of_events_is_found() {
    let mut catch_alls = CatchAlls::default();
    let text = "fn f() { match body { channel_events!() => {} _ => {} } }";
    catch_alls.visit_file(&syn::parse_file(text).unwrap());
    assert_eq!(catch_alls.count, 1);
}

#[test]
fn no_consumer_of_events_has_a_catch_all_arm() {
    let mut found = Vec::new();
    let is_other = |path: &Path| OTHER_BODIES.iter().any(|folder| path.starts_with(folder));
    for path in sources().into_iter().filter(|path| !is_other(path)) {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut catch_alls = CatchAlls::default();
        catch_alls.visit_file(&file);
        if catch_alls.count > 0 {
            found.push(format!("{}: {}", path.display(), catch_alls.count));
        }
    }
    assert!(found.is_empty(), "catch-all arms over events:\n{}", found.join("\n"));
}
