//! The set of available tools.

use std::sync::Arc;

use qwen_events::{ToolDeclaration, ToolKind, ToolSpec};

use crate::{Tool, ToolVocabulary, builtin};

/// The available tools, in the order in which the model sees them.
#[derive(Clone)]
pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
    specs: Arc<[ToolSpec]>,
    vocabulary: ToolVocabulary,
}

impl Registry {
    pub fn new() -> Self {
        Self { tools: Vec::new(), specs: Arc::from([]), vocabulary: ToolVocabulary::Qwen }
    }

    pub fn builtin() -> Self {
        Self::from_tools(builtin::all(), ToolVocabulary::Qwen)
    }

    fn from_tools(tools: Vec<Arc<dyn Tool>>, vocabulary: ToolVocabulary) -> Self {
        let specs = tools.iter().map(|tool| tool.spec().clone()).collect();
        Self { tools, specs, vocabulary }
    }

    /// Renames the tools, including those added later, to the names of `vocabulary`.
    #[must_use]
    pub fn in_vocabulary(self, vocabulary: ToolVocabulary) -> Self {
        if vocabulary == self.vocabulary {
            return self;
        }
        Self::from_tools(self.tools.into_iter().flat_map(|tool| vocabulary.offer(tool)).collect(), vocabulary)
    }

    /// The built-in tools in a vocabulary, without those that `keeps` rejects by their Qwen name.
    pub fn builtin_in(vocabulary: ToolVocabulary, keeps: impl Fn(&str) -> bool) -> Self {
        let more = match vocabulary {
            ToolVocabulary::Qwen => Vec::new(),
            ToolVocabulary::Claude => builtin::only_for_claude(),
        };
        let tools = builtin::all().into_iter().chain(more).filter(|tool| keeps(&tool.spec().name)).collect();
        Self::from_tools(tools, ToolVocabulary::Qwen).in_vocabulary(vocabulary)
    }

    /// The names that the session uses for tools.
    pub fn vocabulary(&self) -> ToolVocabulary {
        self.vocabulary
    }

    /// The name that the session uses for a declared tool.
    pub fn name_of(&self, declaration: &'static ToolDeclaration) -> &'static str {
        let claude = declaration.claude.first().filter(|_| self.vocabulary == ToolVocabulary::Claude);
        claude.map_or(declaration.name, |claude| claude.name)
    }

    /// Adds a tool. Replaces an existing tool of the same name.
    pub fn add(&mut self, tool: Arc<dyn Tool>) {
        let mut tools = std::mem::take(&mut self.tools);
        for tool in self.vocabulary.offer(tool) {
            match tools.iter_mut().find(|known| known.spec().name == tool.spec().name) {
                Some(known) => *known = tool,
                None => tools.push(tool),
            }
        }
        *self = Self::from_tools(tools, self.vocabulary);
    }

    /// Finds a tool by name. Also accepts older names and class-like spellings (`EditTool`).
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let exact = |name: &str| self.tools.iter().find(|tool| &*tool.spec().name == name);
        let matching =
            |tool: &&Arc<dyn Tool>| tool.declaration().is_some_and(|declared| declared.answers_to(name));
        exact(name).or_else(|| self.tools.iter().find(matching))
    }

    /// The tools that requests may list by name only.
    pub fn deferrable(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().filter(|tool| tool.is_deferrable())
    }

    /// The tools that every request describes in full.
    pub fn undeferrable(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().filter(|tool| !tool.is_deferrable())
    }

    /// The kind of each tool, in order.
    pub fn kinds(&self) -> impl Iterator<Item = ToolKind> {
        let kind = |tool: &Arc<dyn Tool>| {
            tool.declaration().map_or(ToolKind::Undeclared, |declaration| declaration.kind)
        };
        self.tools.iter().map(kind)
    }

    pub fn specs(&self) -> Arc<[ToolSpec]> {
        self.specs.clone()
    }

    /// Returns only the tools that `names` match. `mcp__server` and `mcp__server__*` match all tools of a
    /// server.
    pub fn restricted<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let wanted = self.matching(names);
        let tools = self.tools.iter().filter(|tool| wanted.iter().any(|wanted| Arc::ptr_eq(wanted, tool)));
        Self::from_tools(tools.cloned().collect(), self.vocabulary)
    }

    /// Returns the tools that `names` do not match.
    pub fn without<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let unwanted = self.matching(names);
        let tools = self.tools.iter().filter(|tool| !unwanted.iter().any(|known| Arc::ptr_eq(known, tool)));
        Self::from_tools(tools.cloned().collect(), self.vocabulary)
    }

    fn matching<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<&Arc<dyn Tool>> {
        let mut matching = Vec::new();
        for name in names {
            if let Some(tool) = self.get(name) {
                // A Qwen name can stand for several tools of another vocabulary.
                let all = |known: &&Arc<dyn Tool>| {
                    tool.declaration().is_some_and(|declared| {
                        declared.name == name && known.declaration().is_some_and(|other| other.name == name)
                    })
                };
                matching.push(tool);
                matching.extend(self.tools.iter().filter(|known| !Arc::ptr_eq(known, tool)).filter(all));
            } else if let Some(server) = name.strip_prefix("mcp__") {
                let server = server.strip_suffix('*').unwrap_or(server).trim_end_matches("__");
                // `mcp__*` matches all tools of all servers.
                let prefix = if server.is_empty() { "mcp__".to_owned() } else { format!("mcp__{server}__") };
                matching.extend(self.tools.iter().filter(|tool| tool.spec().name.starts_with(&prefix)));
            }
        }
        matching
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restriction_keeps_the_order_and_drops_what_is_not_named() {
        let all = Registry::builtin();
        let some = all.restricted(["ShellTool", "read_file", "no_such_tool"]);
        let names: Vec<_> = some.specs().iter().map(|spec| spec.name.to_string()).collect();
        assert_eq!(names, ["read_file", "run_shell_command"]);
        assert!(some.get("edit").is_none());
    }

    struct OfServer(ToolSpec);

    impl Tool for OfServer {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn run<'a>(
            &'a self,
            _: &'a qwen_events::ToolCall,
            _: &'a crate::CallContext,
        ) -> crate::ToolFuture<'a> {
            Box::pin(std::future::ready(crate::Outcome::default()))
        }
    }

    #[test]
    fn a_servers_name_means_all_its_tools() {
        let mut all = Registry::builtin().restricted(["read_file", "edit"]);
        for name in ["mcp__db__read", "mcp__db__write", "mcp__db2__read"] {
            let parameters = qwen_events::Json::empty_object();
            all.add(Arc::new(OfServer(ToolSpec { name: name.into(), description: "".into(), parameters })));
        }
        let names = |registry: &Registry| {
            registry.specs().iter().map(|spec| spec.name.to_string()).collect::<Vec<_>>().join(" ")
        };
        for wanted in ["mcp__db", "mcp__db__*", "mcp__db__"] {
            assert_eq!(
                names(&all.restricted(["Read", wanted])),
                "read_file mcp__db__read mcp__db__write",
                "{wanted}"
            );
            assert_eq!(names(&all.without([wanted])), "read_file edit mcp__db2__read", "{wanted}");
        }
        assert_eq!(names(&all.restricted(["mcp__db__read", "mcp__d"])), "mcp__db__read");
        assert_eq!(
            names(&all.without(["EditTool", "nothing"])),
            "read_file mcp__db__read mcp__db__write mcp__db2__read"
        );
    }

    #[test]
    fn every_specification_is_an_object_schema_with_its_required_fields_described() {
        for spec in Registry::builtin().specs().iter() {
            let schema: serde_json::Value = serde_json::from_str(spec.parameters.as_str()).unwrap();
            assert_eq!(schema["type"], "object", "{}", spec.name);
            assert!(!spec.parameters.as_str().contains('\n'), "{}", spec.name);
            for field in schema["required"].as_array().into_iter().flatten() {
                let described = &schema["properties"][field.as_str().unwrap()]["description"];
                assert!(described.is_string(), "{} of {}", field, spec.name);
            }
        }
    }

    #[test]
    fn adding_a_tool_of_the_same_name_replaces_it() {
        let mut registry = Registry::builtin();
        let count = registry.specs().len();
        let again = registry.get("read_file").unwrap().clone();
        registry.add(again);
        assert_eq!(registry.specs().len(), count);
    }
}
