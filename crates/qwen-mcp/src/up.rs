//! A connected server: its identity and its current tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::PROTOCOL;
use super::peer::{CallLimits, Peer};
use super::tools::catalogue::Catalogue;
use super::tools::result::{self, ResourceContents};
use super::tools::visible::visible;
use super::{McpError, ServerConfig};

/// The protocol version that we offer. Later ones let a server interrupt the response to a call and resume it
/// on request, which has no benefit here.
const OFFERED: &str = "2025-06-18";
/// The supported protocol versions.
const UNDERSTOOD: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// Most pages of a list that are read.
const PAGES: usize = 64;
/// The longest instructions, in characters.
const LONGEST_INSTRUCTIONS: usize = 4_096;
/// Longest name and version that a server reports, in characters.
const LONGEST_LABEL: usize = 100;

pub(super) struct Up {
    pub peer: Peer,
    pub introduction: Introduction,
    name: Arc<str>,
    config: ServerConfig,
    /// Time limit for listing tools and resources.
    limit: Duration,
    catalogue: Mutex<Arc<Catalogue>>,
}

/// The server's response to `initialize`.
pub(super) struct Introduction {
    /// Its name and version.
    pub info: Option<Value>,
    /// Instructions for the model.
    pub instructions: Option<Arc<str>>,
    pub has_tools: bool,
    pub has_resources: bool,
}

/// Performs the `initialize` handshake. The caller bounds its duration.
async fn introduce(peer: &Peer, name: &str) -> Result<Introduction, McpError> {
    let params = json!({
        "protocolVersion": OFFERED,
        "capabilities": {},
        "clientInfo": {"name": "qwen", "version": env!("CARGO_PKG_VERSION")},
    });
    let answer = peer.request("initialize", |_| params.to_string(), &CallLimits::endless()).await?;
    let wrong = |what: String| McpError::new(PROTOCOL, format!("The MCP server `{name}` {what}."));
    let hello: Hello = serde_json::from_str(answer.get())
        .map_err(|error| wrong(format!("introduced itself wrongly: {error}")))?;
    if !UNDERSTOOD.contains(&hello.protocol_version.as_str()) {
        let version = visible(&hello.protocol_version, LONGEST_LABEL).text;
        return Err(wrong(format!(
            "speaks the version `{version}`; understood are {}",
            UNDERSTOOD.join(", ")
        )));
    }
    peer.agreed(&hello.protocol_version);
    peer.notify("notifications/initialized").await?;
    let label = |text: &str| visible(text, LONGEST_LABEL).text;
    Ok(Introduction {
        info: hello
            .server_info
            .map(|info| json!({"name": label(&info.name), "version": label(&info.version)})),
        instructions: hello
            .instructions
            .filter(|text| !text.trim().is_empty())
            .map(|text| visible(&text, LONGEST_INSTRUCTIONS).text.into()),
        has_tools: hello.capabilities.tools.is_some(),
        has_resources: hello.capabilities.resources.is_some(),
    })
}

#[derive(Deserialize)]
struct Hello {
    #[serde(rename = "protocolVersion")]
    protocol_version: String,
    #[serde(default)]
    capabilities: Capabilities,
    #[serde(rename = "serverInfo", default)]
    server_info: Option<Info>,
    #[serde(default)]
    instructions: Option<String>,
}

#[derive(Deserialize, Default)]
struct Capabilities {
    tools: Option<Value>,
    resources: Option<Value>,
}

#[derive(Deserialize)]
struct Info {
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
}

/// A resource that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceEntry {
    /// The server.
    pub server: Arc<str>,
    pub uri: Arc<str>,
    /// Display name.
    pub name: Arc<str>,
}

impl Up {
    /// Performs the handshake and lists the server's tools.
    pub(super) async fn introduced(
        peer: Peer,
        name: Arc<str>,
        config: ServerConfig,
        limit: Duration,
    ) -> Result<Self, McpError> {
        let introduction = introduce(&peer, &name).await?;
        let up = Self { peer, introduction, name, config, limit, catalogue: Mutex::default() };
        up.list_tools(limit).await?;
        Ok(up)
    }

    pub(super) fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lists the tools again if the server reported a change.
    pub(super) async fn refresh(&self) -> Result<(), McpError> {
        if self.peer.inbox().take_tools_changed() {
            // A call waits for this, at most as long as for its own response.
            let limit = self.config.timeout.map_or(self.limit, |own| own.min(self.limit));
            self.list_tools(limit).await.inspect_err(|_| self.peer.inbox().tools_have_changed())?;
        }
        Ok(())
    }

    async fn list_tools(&self, limit: Duration) -> Result<(), McpError> {
        let listed = if self.introduction.has_tools {
            self.list("tools/list", "tools", limit).await?
        } else {
            Vec::new()
        };
        let catalogue = Catalogue::of(&self.name, &self.config, listed);
        *self.catalogue.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalogue);
        Ok(())
    }

    /// The resources that the server lists.
    pub(super) async fn resources(&self) -> Result<Vec<ResourceEntry>, McpError> {
        #[derive(Deserialize)]
        struct Listed {
            uri: String,
            #[serde(default)]
            name: String,
        }
        if !self.introduction.has_resources {
            return Ok(Vec::new());
        }
        let listed = self.list("resources/list", "resources", self.limit).await?;
        let entry = |one: Box<RawValue>| {
            let listed: Listed = serde_json::from_str(one.get()).ok()?;
            let name = visible(&listed.name, LONGEST_LABEL).text;
            Some(ResourceEntry { server: self.name.clone(), uri: listed.uri.into(), name: name.into() })
        };
        Ok(listed.into_iter().filter_map(entry).collect())
    }

    pub(super) async fn read_resource(
        &self,
        uri: &str,
        limits: &CallLimits<'_>,
    ) -> Result<ResourceContents, McpError> {
        let answer = self.peer.request("resources/read", |_| json!({"uri": uri}).to_string(), limits).await?;
        result::contents(&answer).ok_or_else(|| {
            let words = format!("The MCP server `{}` gave back a resource that cannot be read.", self.name);
            McpError::new(PROTOCOL, words)
        })
    }

    /// Reads all pages of a list.
    async fn list(&self, method: &str, field: &str, limit: Duration) -> Result<Vec<Box<RawValue>>, McpError> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let answer = self.peer.request(method, |_| params.to_string(), &CallLimits::of(limit)).await?;
            let (page, next) = page(&answer, field).ok_or_else(|| {
                McpError::new(
                    PROTOCOL,
                    format!("The MCP server `{}` answered {method} with no list.", self.name),
                )
            })?;
            all.extend(page);
            // Stop if a server repeats a page.
            if next.is_none() || next == cursor {
                break;
            }
            cursor = next;
        }
        Ok(all)
    }
}

fn page(answer: &RawValue, field: &str) -> Option<(Vec<Box<RawValue>>, Option<String>)> {
    let mut fields: HashMap<String, Box<RawValue>> = serde_json::from_str(answer.get()).ok()?;
    let page = serde_json::from_str(fields.remove(field)?.get()).ok()?;
    let next = fields.get("nextCursor").and_then(|next| serde_json::from_str(next.get()).ok()).flatten();
    Some((page, next))
}
