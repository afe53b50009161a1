//! `qwen models`: the models that the configured server offers.

use qwen_events::ErrorInfo;
use serde_json::json;

use crate::cli::{ModelsArgs, Run};
use crate::model_list;
use crate::settings::{Config, Invocation, Layered, OutputWire};

/// Returns the text to print: one model per line, with the configured one marked.
pub async fn run(args: &ModelsArgs, invocation: &mut Invocation) -> Result<String, ErrorInfo> {
    let config = config(args, invocation)?;
    let model = config.model.config.as_ref().map_err(Clone::clone)?;
    let names = model_list::fetch(model).await?;
    let configured = &*config.model.name;
    if args.json {
        let models: Vec<_> =
            names.iter().map(|name| json!({"id": name, "configured": name == configured})).collect();
        return Ok(format!("{:#}\n", json!(models)));
    }
    let line = |name: &String| format!("{} {name}\n", if name == configured { "*" } else { " " });
    Ok(names.iter().map(line).collect())
}

/// The configuration that a run with these flags would have.
pub fn config(args: &ModelsArgs, invocation: &mut Invocation) -> Result<Config, ErrorInfo> {
    let run = Run {
        model: args.model.clone(),
        openai_base_url: args.openai_base_url.clone(),
        auth_type: args.auth_type.clone(),
        configuration: args.configuration.clone(),
        no_session_persistence: true,
        ..Run::default()
    };
    let layered = Layered::load(&run, invocation)?;
    let settings = layered.settings()?;
    let wire = OutputWire::resolve(&run, invocation, Some(&settings.output))?;
    Config::resolve(&run, invocation, settings, layered, &wire)
}
