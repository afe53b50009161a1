//! Deferred tools: when the schemas of MCP and host tools exceed the budget, requests list them by name only,
//! and `tool_search` loads them. A loaded tool's schema follows all others, so that the prefix that providers
//! cache stays the same.

use std::sync::{Arc, Mutex, PoisonError};

use qwen_events::{ClaudeTool, Json, ToolCall, ToolDeclaration, ToolKind, ToolSpec};
use qwen_tools::{Arguments, CallContext, Outcome, Registry, Tool, ToolFuture};

/// The name of the tool that finds deferred tools.
pub const TOOL: &str = "tool_search";

/// The tool's declaration. Its description lists the deferred tools of the session.
pub const DECLARATION: ToolDeclaration =
    ToolDeclaration::new(TOOL, ToolKind::Session, "", &[]).claude(&[ClaudeTool::with_name("ToolSearch")]);

/// The default budget of tool schemas beyond the built-in ones, in bytes.
pub const SCHEMA_BUDGET: usize = 12_288;

/// The maximum length of the line about one tool, in characters, without its name.
const MAX_LINE: usize = 48;
/// The maximum length of the list of deferred tools, in bytes.
const MAX_LIST: usize = 5000;
/// How many tools one search loads.
const MAX_FOUND: usize = 5;

/// The deferred tools that a session has loaded, in the order of loading.
#[derive(Debug, Default)]
pub struct LoadedTools(Mutex<Vec<Arc<str>>>);

impl LoadedTools {
    /// Offers a tool in full from the next request on.
    pub(crate) fn load(&self, name: &Arc<str>) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.contains(name) {
            names.push(name.clone());
        }
    }

    fn names(&self) -> Vec<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// `tools` with `tool_search`, if the schemas of deferrable tools exceed `budget` bytes.
pub(crate) fn with_search(tools: Arc<Registry>, budget: usize, loaded: &Arc<LoadedTools>) -> Arc<Registry> {
    let deferrable: Vec<ToolSpec> = tools.deferrable().map(|tool| tool.spec().clone()).collect();
    let size = |spec: &ToolSpec| spec.name.len() + spec.description.len() + spec.parameters.as_str().len();
    if deferrable.iter().map(size).sum::<usize>() <= budget {
        return tools;
    }
    let mut all = Registry::clone(&tools);
    all.add(Arc::new(ToolSearch::new(deferrable, loaded.clone())));
    Arc::new(all)
}

/// The tools that a request offers: those that are not deferred, then the loaded ones in the order of loading.
pub(crate) fn offered(tools: &Registry, loaded: &LoadedTools) -> Arc<[ToolSpec]> {
    if tools.get(TOOL).is_none() {
        return tools.specs();
    }
    let names = loaded.names();
    let find = |name: &Arc<str>| tools.deferrable().find(|tool| tool.spec().name == *name);
    let loaded = names.iter().filter_map(find).map(|tool| tool.spec().clone());
    let always = tools.undeferrable().map(|tool| tool.spec().clone());
    always.chain(loaded).collect()
}

struct ToolSearch {
    spec: ToolSpec,
    deferred: Vec<ToolSpec>,
    loaded: Arc<LoadedTools>,
}

impl ToolSearch {
    fn new(deferred: Vec<ToolSpec>, loaded: Arc<LoadedTools>) -> Self {
        let mut list = String::new();
        for (at, spec) in deferred.iter().enumerate() {
            let line = format!("\n{}: {}", spec.name, summary(&spec.description));
            if list.len() + line.len() > MAX_LIST {
                list.push_str(&format!("\nand {} more", deferred.len() - at));
                break;
            }
            list.push_str(&line);
        }
        let description = format!(
            "Loads tools that are listed here by name only, so that they can be called from the next message on. The tools:{list}"
        );
        let parameters = r#"{"type":"object","properties":{"query":{"type":"string","description":"Names of tools, separated by commas, or words that describe what is needed."}},"required":["query"]}"#;
        let spec = ToolSpec {
            name: TOOL.into(),
            description: description.into(),
            parameters: Json::trusted(parameters),
        };
        Self { spec, deferred, loaded }
    }

    fn search(&self, call: &ToolCall) -> Outcome {
        let query = Arguments::parse(call)
            .and_then(|arguments| arguments.nonempty_text("query").map(str::to_lowercase));
        let query = match query {
            Ok(query) => query,
            Err(error) => return Outcome::failure("invalid_arguments", error.to_string()),
        };
        let found = find(&self.deferred, &query);
        if found.is_empty() {
            return Outcome::failure("not_found", format!("No tool matches '{query}'. Try another query."));
        }
        // The next request describes them in full.
        let mut text = "These tools can be called from the next message on:".to_owned();
        for spec in found {
            self.loaded.load(&spec.name);
            text.push_str(&format!("\n{}: {}", spec.name, summary(&spec.description)));
        }
        Outcome::success(text)
    }
}

/// The tools that a query names, or else those that match most of its words.
fn find<'a>(tools: &'a [ToolSpec], query: &str) -> Vec<&'a ToolSpec> {
    let names: Vec<&str> = query.split(',').map(str::trim).collect();
    let named: Vec<&ToolSpec> =
        tools.iter().filter(|spec| names.contains(&spec.name.to_lowercase().as_str())).collect();
    if !named.is_empty() {
        return named;
    }
    let is_meaningful = |word: &&str| word.len() > 1 || word.chars().all(|c| c.is_ascii_digit());
    let words: Vec<&str> = words_of(query).filter(|word| !word.is_empty()).filter(is_meaningful).collect();
    let score = |spec: &ToolSpec| -> usize {
        let (name, description) = (spec.name.to_lowercase(), spec.description.to_lowercase());
        // A word counts more in the name, and more as a whole word.
        let points = |word: &str| {
            let part = 2 * usize::from(name.contains(word)) + usize::from(description.contains(word));
            let whole = |text: &str| usize::from(words_of(text).any(|known| known == word));
            part + 2 * whole(&name) + whole(&description)
        };
        words.iter().map(|word| points(word)).sum()
    };
    let mut scored: Vec<(usize, &ToolSpec)> = tools.iter().map(|spec| (score(spec), spec)).collect();
    scored.retain(|(points, _)| *points > 0);
    // The sort is stable, so equal tools stay in their order.
    scored.sort_by_key(|(points, _)| std::cmp::Reverse(*points));
    // A loaded schema stays in all later requests, so a weak match beside a strong one is left out.
    let best = scored.first().map_or(0, |(points, _)| *points);
    let strong = scored.into_iter().take_while(|(points, _)| points * 2 >= best);
    strong.take(MAX_FOUND).map(|(_, spec)| spec).collect()
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
}

/// The beginning of a description on one line.
fn summary(description: &str) -> String {
    let line: String = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = line.split(". ").next().unwrap_or_default();
    sentence.chars().take(MAX_LINE).collect()
}

impl Tool for ToolSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn declaration(&self) -> Option<&'static ToolDeclaration> {
        Some(&DECLARATION)
    }

    fn only_reads(&self, _: &ToolCall) -> bool {
        true
    }

    fn run<'a>(&'a self, call: &'a ToolCall, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { self.search(call) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, description: &str) -> ToolSpec {
        ToolSpec { name: name.into(), description: description.into(), parameters: Json::empty_object() }
    }

    #[test]
    fn a_search_finds_tools_by_name_or_by_words() {
        let tools = [
            spec("mcp__w__forecast", "The weather of tomorrow"),
            spec("mcp__db__query", "Runs SQL"),
            spec("mcp__w__now", "The weather of today"),
        ];
        let names =
            |query: &str| find(&tools, query).iter().map(|spec| &*spec.name).collect::<Vec<_>>().join(" ");
        assert_eq!(names("mcp__db__query, mcp__w__now"), "mcp__db__query mcp__w__now");
        assert_eq!(names("weather tomorrow"), "mcp__w__forecast mcp__w__now");
        assert_eq!(names("unrelated"), "");
        let numbered: Vec<ToolSpec> = (0..20)
            .map(|n| spec(&format!("tool_{n:02}"), &format!("Does task {n} of the tracker")))
            .collect();
        assert_eq!(&*find(&numbered, "task 7")[0].name, "tool_07");
        assert_eq!(find(&numbered, "task 7").len(), 2, "weak matches are not loaded");
        assert_eq!(find(&numbered, "tracker").len(), MAX_FOUND);
    }

    #[test]
    fn a_search_repeats_no_long_description() {
        let tools = vec![spec("mcp__w__now", &format!("The weather of today. {}", "More. ".repeat(200)))];
        let search = ToolSearch::new(tools, Arc::default());
        let call = ToolCall::new(
            qwen_events::CallId::new("c"),
            TOOL.into(),
            Json::trusted(r#"{"query":"weather"}"#),
        );
        let expected =
            "These tools can be called from the next message on:\nmcp__w__now: The weather of today";
        assert_eq!(search.search(&call).text, expected);
    }

    #[test]
    fn sixty_tools_are_listed_in_five_kilobytes() {
        let tools: Vec<ToolSpec> = (0..60)
            .map(|n| spec(&format!("mcp__server__operation_{n}"), &"Does something useful. ".repeat(90)))
            .collect();
        let search = ToolSearch::new(tools, Arc::default());
        assert!(search.spec.description.len() < MAX_LIST + 300, "{}", search.spec.description.len());
        assert!(search.spec.description.contains("operation_59"));
    }
}
