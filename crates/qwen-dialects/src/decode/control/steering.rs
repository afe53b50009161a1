//! Control requests with which hosts of Claude's SDKs adjust and query a session.

use qwen_events::{SessionControl, SessionReport, SettingChange};

use crate::decode::Result;
use crate::decode::field::{Kind, Object, Value};
use crate::decode::options::filled;

/// Reads a request of this kind; none for any other subtype.
pub(in crate::decode) fn read(subtype: &str, fields: &Object<'_>) -> Result<Option<SessionControl>> {
    Ok(Some(match subtype {
        "set_max_thinking_tokens" => SessionControl::Thinking {
            tokens: nullable(fields, "max_thinking_tokens", Value::count)?,
            display: nullable(fields, "thinking_display", Value::string)?,
        },
        "mcp_set_servers" => {
            let servers = fields.need("servers", "MCP servers by name")?.object()?;
            let config = |(name, config): (&str, Value<'_>)| match config.kind() {
                Kind::Object => Ok((name.into(), config.json())),
                _ => Err(config.type_error("a server's configuration, which is an object")),
            };
            SessionControl::McpServers(servers.entries().map(config).collect::<Result<_>>()?)
        }
        "apply_flag_settings" => {
            let settings = fields.need("settings", "settings by name")?;
            settings.object()?;
            SessionControl::FlagSettings(settings.json())
        }
        "seed_read_state" => SessionControl::SeenFile {
            path: filled(&fields.need("path", "a path")?)?,
            mtime_ms: fields.need("mtime", "milliseconds since 1970")?.count()?,
        },
        "read_file" => SessionControl::ReadFile {
            path: filled(&fields.need("path", "a path")?)?,
            max_bytes: fields.count("max_bytes")?,
            base64: fields.string("encoding")?.as_deref() == Some("base64"),
        },
        "reload_output_styles" => SessionControl::ReloadOutputStyles,
        "cancel_async_message" => {
            SessionControl::WithdrawPrompt(filled(&fields.need("message_uuid", "the id of a prompt")?)?)
        }
        "set_has_subscribers" => SessionControl::Watched,
        "reload_skills" => SessionControl::ReloadSkills,
        "reload_plugins" => SessionControl::ReloadPlugins {
            adds_some: fields.get("add_plugins").is_some_and(|added| added.json().as_str() != "[]"),
        },
        "rename_session" => SessionControl::Rename(filled(&fields.need("title", "a title")?)?),
        "mcp_read_resource" => SessionControl::ReadResource {
            server: filled(&fields.need_any(&["serverName", "server_name"], "the server's name")?)?,
            uri: filled(&fields.need("uri", "the resource's URI")?)?,
        },
        "register_repo_root" => {
            SessionControl::AddDirectory(filled(&fields.need("directory", "a directory")?)?)
        }
        "set_mcp_permission_mode_override" => SessionControl::ServerMode {
            server: filled(&fields.need_any(&["serverName", "server_name"], "the server's name")?)?,
            mode: fields.string("mode")?,
        },
        _ => return Ok(report(subtype, fields)?.map(SessionControl::Report)),
    }))
}

/// Reads a request for a report; none for any other subtype.
fn report(subtype: &str, fields: &Object<'_>) -> Result<Option<SessionReport>> {
    Ok(Some(match subtype {
        "get_session_cost" => SessionReport::Cost,
        "get_usage" => SessionReport::Usage,
        "get_settings" => SessionReport::Settings,
        "list_models" => SessionReport::Models,
        "list_permission_rules" => SessionReport::PermissionRules,
        "get_task_output" => SessionReport::TaskOutput(filled(&fields.need("task_id", "the task's id")?)?),
        "file_suggestions" => {
            SessionReport::Files(fields.need("query", "the beginning of a path")?.string()?)
        }
        _ => return Ok(None),
    }))
}

/// A field for which null and absent mean different things.
fn nullable<'a, T>(
    fields: &Object<'a>,
    name: &str,
    read: impl FnOnce(&Value<'a>) -> Result<T>,
) -> Result<SettingChange<T>> {
    match fields.get_raw(name) {
        None => Ok(SettingChange::Keep),
        Some(value) if value.kind() == Kind::Null => Ok(SettingChange::Reset),
        Some(value) => read(&value).map(SettingChange::Be),
    }
}
