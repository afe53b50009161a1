//! `qwen serve`: a hub in this process and the HTTP server as its only client. This module reads the flags
//! and connects the two; everything else is in `qwen-serve` and `qwen-kernel`.

pub mod mcp;
mod sessions;
#[cfg(feature = "fleet")]
mod shared;
mod stored;

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use qwen_events::ErrorInfo;
use qwen_serve::{Listen, Listener, ServeLimits, ServeOptions, ServeParts, TlsFiles, Tokens};
use tokio::task::LocalSet;

#[cfg(feature = "fleet")]
use self::sessions::ServerBus;
use self::sessions::{
    PreparedSessions, WorkerFlags, invocation, lock, refuse, state_directory, usage, workspaces,
};
use crate::cli::ServeArgs;
use crate::runtime::exit;
use crate::settings::Invocation;

/// A server that is about to start.
pub struct PreparedServer {
    tokens: Tokens,
    sessions: PreparedSessions,
    opens_browser: bool,
}

/// Reads the flags and opens the server's directory.
pub fn prepare(args: &ServeArgs) -> Result<PreparedServer, ErrorInfo> {
    let invocation = invocation()?;
    let state = state_directory(&invocation);
    let options = options(args, &invocation, state.clone())?;
    let given = invocation.var("QWEN_SERVER_TOKEN");
    let tokens = Tokens::load(&state, args.new_token, given).map_err(usage)?;
    let lock = lock(&state)?.ok_or_else(|| {
        refuse(format!("Another server uses {}. Stop it, or set another QWEN_HOME.", state.display()))
    })?;
    let flags = WorkerFlags { approval_timeout: args.approval_timeout, further: &args.worker_args };
    #[cfg_attr(not(feature = "fleet"), expect(unused_mut, reason = "a bus changes it"))]
    let mut sessions = PreparedSessions::open(options, &invocation, &flags, lock)?;
    #[cfg(feature = "fleet")]
    if let Some(bus) = server_bus(args, &invocation)? {
        sessions.share(bus);
    }
    Ok(PreparedServer { tokens, sessions, opens_browser: args.open })
}

/// The bus over which the server shares its sessions, if any.
#[cfg(feature = "fleet")]
fn server_bus(args: &ServeArgs, invocation: &Invocation) -> Result<Option<ServerBus>, ErrorInfo> {
    let config = super::bus::configured(args.config.as_deref())?;
    let Some(options) = super::bus::options(&args.bus, &config, invocation)? else {
        if args.local {
            return Err(refuse("--local is for a server on a bus; name one with --bus.".to_owned()));
        }
        return Ok(None);
    };
    if !args.local && (!args.worker_args.is_empty() || args.approval_timeout.is_some()) {
        let message = "A server on a bus without --local has no workers. Give their flags to `qwen node`; --approval-timeout is --question-timeout there.";
        return Err(refuse(message.to_owned()));
    }
    Ok(Some(ServerBus { options, is_local: args.local }))
}

fn options(args: &ServeArgs, invocation: &Invocation, state: PathBuf) -> Result<ServeOptions, ErrorInfo> {
    let workspaces = workspaces(&args.workspace, invocation)?;
    let certificate = args.tls_cert.as_ref().zip(args.tls_key.as_ref());
    let tls = certificate.map(|(certificate, key)| TlsFiles {
        certificate: invocation.cwd.join(certificate),
        key: invocation.cwd.join(key),
    });
    let sessions = usize::try_from(args.max_sessions).unwrap_or(usize::MAX);
    let options = ServeOptions {
        listen: Listen::parse(&args.listen).map_err(usage)?,
        workspaces,
        origins: args.allow_origin.clone(),
        allows_remote: args.allow_remote,
        is_insecure: args.insecure,
        tls,
        state,
        limits: ServeLimits { sessions, approval: args.approval_timeout, ..ServeLimits::default() },
    };
    options.check().map_err(usage)?;
    Ok(options)
}

/// Serves until a signal arrives, and returns the exit code.
pub async fn run(prepared: PreparedServer) -> u8 {
    LocalSet::new().run_until(serve(prepared)).await
}

async fn serve(prepared: PreparedServer) -> u8 {
    let PreparedServer { tokens, sessions, opens_browser } = prepared;
    let started = async {
        let listener = Listener::bind(&sessions.options).await?;
        announce(&listener, &tokens, &sessions.options.state, opens_browser);
        let (sessions, _lock) = sessions.start().await?;
        qwen_serve::serve(ServeParts { listener, tokens, sessions }).await
    };
    match started.await {
        Ok(code) => code,
        Err(error) => {
            exit::report(&format!("qwen: {error}"));
            1
        }
    }
}

/// Reports the address. The token is shown if it is new or standard error is a terminal.
fn announce(listener: &Listener, tokens: &Tokens, state: &Path, opens_browser: bool) {
    let address = match &listener.address {
        Listen::Unix(path) => {
            return exit::report(&format!("qwen: serving on unix:{}", path.display()));
        }
        Listen::Tcp(address) => address,
    };
    let scheme = if listener.has_tls() { "https" } else { "http" };
    let link = format!("{scheme}://{address}/#token={}", tokens.full());
    if tokens.is_new || io::stderr().is_terminal() {
        exit::report(&format!("qwen: serving on {link}"));
    } else {
        let file = state.join("token");
        exit::report(&format!("qwen: serving on {scheme}://{address}/ with the token in {}", file.display()));
    }
    if opens_browser && let Err(error) = open_browser(&link, state) {
        exit::report(&format!("qwen: the browser cannot be opened: {error}. Open the link above."));
    }
}

/// Opens a private file that leads to the link: an argument would show the token to every user.
fn open_browser(link: &str, state: &Path) -> io::Result<()> {
    use std::io::Write;
    let page = state.join("open.html");
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&page)?;
    write!(file, "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={link}\">")?;
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let nothing = std::process::Stdio::null;
    std::process::Command::new(program)
        .arg(&page)
        .stdin(nothing())
        .stdout(nothing())
        .stderr(nothing())
        .spawn()?;
    Ok(())
}
