//! A connected server: its identity and its current tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::error::{PROTOCOL, REFUSED};
use super::peer::{CallLimits, Peer};
use super::request::{Request, STATELESS, client_info};
use super::tools::catalogue::Catalogue;
use super::tools::result::{self, ResourceContents};
use super::tools::visible::visible;
use super::{McpError, ServerConfig};

/// The protocol version that we offer in a handshake. The next one lets a server interrupt the response to a
/// call and resume it on request, which has no benefit here.
const OFFERED: &str = "2025-06-18";
/// The supported protocol versions.
const UNDERSTOOD: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", STATELESS];
/// Most pages of a list that are read.
const PAGES: usize = 64;
/// The longest instructions, in characters.
const LONGEST_INSTRUCTIONS: usize = 4_096;
/// Longest name and version that a server reports, in characters.
const LONGEST_LABEL: usize = 100;

pub(super) struct Connection {
    pub peer: Peer,
    pub introduction: Introduction,
    name: Arc<str>,
    config: ServerConfig,
    /// Time limit for listing tools and resources.
    limit: Duration,
    catalogue: Mutex<Arc<Catalogue>>,
    /// When the list of tools expires, if the server specified it.
    outdated_at: Mutex<Option<Instant>>,
}

/// The server's response to `initialize` or `server/discover`.
pub(super) struct Introduction {
    /// Its name and version.
    pub info: Option<Value>,
    /// Instructions for the model.
    pub instructions: Option<Arc<str>>,
    pub has_tools: bool,
    pub has_resources: bool,
    /// True if it reports changes of its tools.
    reports_changes: bool,
}

/// Learns what the server offers. Servers are asked with the handshake first, because older ones may end or
/// stay silent when the first message is a different one; those without a handshake refuse it, and are asked
/// their way. The caller bounds the duration.
async fn introduce(peer: &Peer, name: &str, limit: Duration) -> Result<Introduction, McpError> {
    match initialize(peer, name).await {
        Err(refused) if refused.code == REFUSED => {
            peer.set_stateless();
            // One that is silent then must not hide why it refused.
            match discover(peer, name, limit / 2).await {
                // A server that answered both with an error is best explained by the first one.
                Err(error) if error.code != PROTOCOL => Err(refused),
                discovered => discovered,
            }
        }
        introduced => introduced,
    }
}

/// Performs the `initialize` handshake.
async fn initialize(peer: &Peer, name: &str) -> Result<Introduction, McpError> {
    let members =
        format!(r#""protocolVersion":"{OFFERED}","capabilities":{{}},"clientInfo":{}"#, client_info());
    let answer = peer.request(&Request::new("initialize", members), &CallLimits::endless()).await?;
    let hello: Hello = parsed(&answer, name)?;
    check_versions(std::slice::from_ref(&hello.protocol_version), UNDERSTOOD, name)?;
    if hello.protocol_version == STATELESS {
        peer.set_stateless();
    } else {
        peer.agreed(&hello.protocol_version);
    }
    peer.notify("notifications/initialized").await?;
    Ok(Introduction::new(hello.server_info, hello.instructions, &hello.capabilities))
}

/// Queries a server without a handshake.
async fn discover(peer: &Peer, name: &str, limit: Duration) -> Result<Introduction, McpError> {
    let request = Request::new("server/discover", String::new());
    let answer = peer.request(&request, &CallLimits::with_limit(limit)).await?;
    let found: Discovered = parsed(&answer, name)?;
    check_versions(&found.supported_versions, &[STATELESS], name)?;
    Ok(Introduction::new(found.meta.server_info, found.instructions, &found.capabilities))
}

fn parsed<'a, T: Deserialize<'a>>(answer: &'a RawValue, name: &str) -> Result<T, McpError> {
    serde_json::from_str(answer.get()).map_err(|error| {
        McpError::new(
            PROTOCOL,
            format!("The MCP server `{name}` sent an invalid `initialize` result: {error}."),
        )
    })
}

/// Fails if none of the server's versions is understood.
fn check_versions(offered: &[String], supported: &[&str], name: &str) -> Result<(), McpError> {
    if offered.iter().any(|version| supported.contains(&version.as_str())) {
        return Ok(());
    }
    let offered = visible(&offered.join(", "), LONGEST_LABEL).text;
    let supported = UNDERSTOOD.join(", ");
    let words =
        format!("The MCP server `{name}` uses protocol version `{offered}`; supported are {supported}.");
    Err(McpError::new(PROTOCOL, words))
}

impl Introduction {
    fn new(info: Option<Info>, instructions: Option<String>, capabilities: &Capabilities) -> Self {
        let label = |text: &str| visible(text, LONGEST_LABEL).text;
        Self {
            info: info.map(|info| json!({"name": label(&info.name), "version": label(&info.version)})),
            instructions: instructions
                .filter(|text| !text.trim().is_empty())
                .map(|text| visible(&text, LONGEST_INSTRUCTIONS).text.into()),
            has_tools: capabilities.tools.is_some(),
            has_resources: capabilities.resources.is_some(),
            reports_changes: capabilities.tools.as_ref().is_some_and(|tools| tools["listChanged"] == true),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hello {
    protocol_version: String,
    #[serde(default)]
    capabilities: Capabilities,
    #[serde(default)]
    server_info: Option<Info>,
    #[serde(default)]
    instructions: Option<String>,
}

/// The response to `server/discover`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    supported_versions: Vec<String>,
    #[serde(default)]
    capabilities: Capabilities,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(rename = "_meta", default)]
    meta: ResultMeta,
}

#[derive(Deserialize, Default)]
struct ResultMeta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo", default)]
    server_info: Option<Info>,
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
    pub server: Arc<str>,
    pub uri: Arc<str>,
    /// The name that is shown to users.
    pub name: Arc<str>,
}

impl Connection {
    /// Performs the handshake and lists the server's tools.
    pub(super) async fn introduced(
        peer: Peer,
        name: Arc<str>,
        config: ServerConfig,
        limit: Duration,
    ) -> Result<Self, McpError> {
        let introduction = introduce(&peer, &name, limit).await?;
        let up = Self {
            peer,
            introduction,
            name,
            config,
            limit,
            catalogue: Mutex::default(),
            outdated_at: Mutex::default(),
        };
        // Before the list is read, so that no change is missed.
        if up.introduction.reports_changes && up.peer.inbox().is_stateless() {
            up.peer.subscribe().await?;
        }
        up.list_tools(limit).await?;
        Ok(up)
    }

    pub(super) fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if the server reported a change of its tools, or the time has passed for which their list is
    /// valid.
    pub(super) fn is_outdated(&self) -> bool {
        let outdated_at = *self.outdated_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.peer.inbox().have_tools_changed() || outdated_at.is_some_and(|at| Instant::now() >= at)
    }

    /// Lists the tools again if their list is outdated.
    pub(super) async fn refresh(&self) -> Result<(), McpError> {
        if self.is_outdated() {
            self.peer.inbox().take_tools_changed();
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
            Listing::default()
        };
        let valid_for = listed.valid_for.filter(|_| self.peer.inbox().is_stateless());
        *self.outdated_at.lock().unwrap_or_else(PoisonError::into_inner) =
            valid_for.and_then(|time| Instant::now().checked_add(time));
        let catalogue = Catalogue::build(&self.name, &self.config, listed.entries, self.peer.has_headers());
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
        Ok(listed.entries.into_iter().filter_map(entry).collect())
    }

    pub(super) async fn read_resource(
        &self,
        uri: &str,
        limits: &CallLimits<'_>,
    ) -> Result<ResourceContents, McpError> {
        let answer = self.read_raw_resource(uri, limits).await?;
        result::contents(&answer).ok_or_else(|| {
            let words = format!("The MCP server `{}` returned a resource that cannot be read.", self.name);
            McpError::new(PROTOCOL, words)
        })
    }

    /// Reads a resource and returns the server's result as it is.
    pub(super) async fn read_raw_resource(
        &self,
        uri: &str,
        limits: &CallLimits<'_>,
    ) -> Result<Box<RawValue>, McpError> {
        let request = Request::new("resources/read", format!(r#""uri":{}"#, Value::from(uri))).naming(uri);
        self.peer.request(&request, limits).await
    }

    /// Reads all pages of a list.
    async fn list(&self, method: &'static str, field: &str, limit: Duration) -> Result<Listing, McpError> {
        let mut all = Listing::default();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES {
            let cursor_member = |cursor: &String| format!(r#""cursor":{}"#, Value::from(cursor.as_str()));
            let request = Request::new(method, cursor.as_ref().map(cursor_member).unwrap_or_default());
            let answer = self.peer.request(&request, &CallLimits::with_limit(limit)).await?;
            let (page, next) = page(&answer, field).ok_or_else(|| {
                McpError::new(
                    PROTOCOL,
                    format!("The MCP server `{}` answered {method} without a list.", self.name),
                )
            })?;
            all.entries.extend(page.entries);
            all.valid_for = page.valid_for;
            // Stop if a server repeats a page.
            if next.is_none() || next == cursor {
                break;
            }
            cursor = next;
        }
        Ok(all)
    }
}

/// A list, or one page of it.
#[derive(Default)]
struct Listing {
    entries: Vec<Box<RawValue>>,
    /// How long it is valid, if the server specifies it.
    valid_for: Option<Duration>,
}

fn page(answer: &RawValue, field: &str) -> Option<(Listing, Option<String>)> {
    let mut fields: HashMap<String, Box<RawValue>> = serde_json::from_str(answer.get()).ok()?;
    let entries = serde_json::from_str(fields.remove(field)?.get()).ok()?;
    let next = fields.get("nextCursor").and_then(|next| serde_json::from_str(next.get()).ok()).flatten();
    let milliseconds = fields.get("ttlMs").and_then(|time| serde_json::from_str::<u64>(time.get()).ok());
    // Zero leaves it to the client.
    let valid_for = milliseconds.filter(|time| *time > 0).map(Duration::from_millis);
    Some((Listing { entries, valid_for }, next))
}
