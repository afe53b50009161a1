//! `qwen models`: the models that the configured server offers.

use qwen_events::ErrorInfo;
use serde_json::json;

use crate::cli::{ModelsArgs, Run};
use crate::model_list;
use crate::settings::{Config, Invocation, Layered, OutputWire, file};

/// Returns the text to print: one model per line, with the one that a run would use marked.
pub async fn run(args: &ModelsArgs, invocation: &mut Invocation) -> Result<String, ErrorInfo> {
    let run = flags(args);
    let Resolvable { settings, layered, wire } = Resolvable::load(&run, invocation)?;
    let is_named = !Config::needs_discovery(invocation, &settings, &layered);
    let config = Config::resolve(&run, invocation, settings, layered, &wire)?;
    let model = config.model.config.as_ref().map_err(Clone::clone)?;
    let names = model_list::fetch(model, model_list::TIMEOUT).await?;
    if names.is_empty() && !args.json {
        return Err(model_list::none_offered(model));
    }
    // Without a configured model, a run uses the only one.
    let used = |name: &str| if is_named { *name == *config.model.name } else { names.len() == 1 };
    if args.json {
        let models: Vec<_> = names.iter().map(|name| json!({"id": name, "configured": used(name)})).collect();
        return Ok(format!("{:#}\n", json!(models)));
    }
    let line = |name: &String| format!("{} {name}\n", if used(name) { "*" } else { " " });
    Ok(names.iter().map(line).collect())
}

/// The configuration that a run with these flags would have.
pub async fn config_with_discovery(
    args: &ModelsArgs,
    invocation: &mut Invocation,
) -> Result<Config, ErrorInfo> {
    let run = flags(args);
    let Resolvable { settings, layered, wire } = Resolvable::load(&run, invocation)?;
    Config::resolve_with_discovery(&run, invocation, settings, layered, &wire).await
}

/// The same without asking the server.
pub fn config(args: &ModelsArgs, invocation: &mut Invocation) -> Result<Config, ErrorInfo> {
    let run = flags(args);
    let Resolvable { settings, layered, wire } = Resolvable::load(&run, invocation)?;
    Config::resolve(&run, invocation, settings, layered, &wire)
}

/// What a configuration is resolved from.
struct Resolvable {
    settings: file::Settings,
    layered: Layered,
    wire: OutputWire,
}

impl Resolvable {
    fn load(run: &Run, invocation: &mut Invocation) -> Result<Self, ErrorInfo> {
        let layered = Layered::load(run, invocation)?;
        let settings = layered.settings()?;
        let wire = OutputWire::resolve(run, invocation, Some(&settings.output))?;
        Ok(Self { settings, layered, wire })
    }
}

fn flags(args: &ModelsArgs) -> Run {
    Run {
        model: args.model.clone(),
        openai_base_url: args.openai_base_url.clone(),
        auth_type: args.auth_type.clone(),
        configuration: args.configuration.clone(),
        no_session_persistence: true,
        ..Run::default()
    }
}
