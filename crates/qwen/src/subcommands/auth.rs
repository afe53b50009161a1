//! `qwen auth`: where the model's key comes from. Editors ask before they start a session.

use std::path::Path;

use qwen_events::{ErrorInfo, ErrorKind};
use qwen_model::{ModelConfig, Provider};
use serde_json::json;

use crate::cli::{AuthAction, AuthStatusArgs, ModelsArgs};
use crate::settings::Invocation;
use crate::subcommands::models;

/// The text to print, and whether a model is configured.
pub struct AuthReport {
    pub text: String,
    pub is_configured: bool,
}

pub fn run(action: &AuthAction, invocation: &mut Invocation) -> Result<AuthReport, ErrorInfo> {
    match action {
        AuthAction::Status(args) => status(args, invocation),
        AuthAction::Login(_) => {
            let message = "there is nothing to sign in to: set OPENAI_API_KEY, DASHSCOPE_API_KEY or ANTHROPIC_API_KEY, \
                           or the setting model.apiKeyEnv";
            Err(ErrorInfo::new(ErrorKind::Auth, "no_login", message))
        }
        AuthAction::Logout => {
            let text = "No sign-in is stored. Keys come from the environment and the settings.\n".to_owned();
            Ok(AuthReport { text, is_configured: true })
        }
    }
}

/// The fields are those that the Claude CLI prints.
fn status(args: &AuthStatusArgs, invocation: &mut Invocation) -> Result<AuthReport, ErrorInfo> {
    let asked = ModelsArgs { configuration: args.configuration.clone(), ..ModelsArgs::default() };
    let config = models::config(&asked, invocation)?;
    let model = config.model.config.as_ref();
    let is_configured = model.is_ok();
    let key_source = Some(&*config.model.key_source).filter(|source| is_configured && *source != "none");
    if args.text {
        let text = match (model, key_source) {
            (Err(error), _) => error.message.to_string(),
            (Ok(_), Some(source)) => format!("API key: {source}"),
            (Ok(_), None) => "A model is configured, without a key.".to_owned(),
        };
        let text = format!("{}\n", config.diagnostics.redactor.redact(&text));
        return Ok(AuthReport { text, is_configured });
    }
    let directory = invocation
        .var("CLAUDE_CONFIG_DIR")
        .map(|path| invocation.cwd.join(path))
        .or_else(|| Some(Path::new(invocation.var("HOME")?).join(".claude")));
    let mut report = json!({
        "loggedIn": is_configured,
        "authMethod": if key_source.is_some() { "api_key" } else { "none" },
        "apiProvider": model.map_or("firstParty", provider_name),
        "configDirectory": directory,
        "projectsDirectory": directory.as_ref().map(|directory| directory.join("projects")),
        "loginExpiresAt": null,
    });
    if let Some(source) = key_source {
        report["apiKeySource"] = source.into();
    }
    Ok(AuthReport { text: format!("{report:#}\n"), is_configured })
}

/// `firstParty` is the Claude CLI's word for Anthropic's own service.
fn provider_name(model: &ModelConfig) -> &'static str {
    match model.provider {
        Provider::Anthropic => "firstParty",
        Provider::OpenAi => "openai",
        Provider::Demo | Provider::Script(_) | Provider::Replay(_) | Provider::Oracle(_) => "built-in",
    }
}
