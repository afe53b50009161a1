//! Chooses the role of the process and its exit code.

pub mod acp;
#[cfg(feature = "fleet")]
pub mod bus;
pub mod hub;
pub mod oneshot;
pub mod serve;
pub mod terminal;
pub mod worker;

use std::future::Future;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches};
use qwen_dialects::{Dialect, Format, StreamInfo, encoder};
use qwen_engine::agent::unknown_agent;
use qwen_events::{AgentName, Body, ErrorInfo, ErrorKind, Event, Scope, SessionId, Timestamp};
use rustix::fs::FileType;

use crate::cli::{AuthAction, Cli, LogFormat, McpAction, McpListArgs, Run, Subcommands, arguments, parsed};
use crate::runtime::exit;
use crate::runtime::privacy;
use crate::runtime::restart;
use crate::runtime::version;
use crate::session::{prompt, retention};
use crate::settings::{Config, Invocation, Layered, OutputWire};
use crate::subcommands;
use crate::subcommands::auth::AuthReport;
use crate::subcommands::doctor::Diagnosis;
use crate::subcommands::mcp::ServerListing;
use crate::subcommands::sessions::SubcommandError;
use crate::telemetry::Tracing;

/// Parses the command line and runs the role that it requests.
pub fn run() -> ExitCode {
    privacy::forbid_memory_access();
    if let Some(text) = version::requested() {
        return print_bytes(text.as_bytes());
    }
    let (cli, notice) = match parsed() {
        Ok(parsed) => parsed,
        Err(error) => return report_command_line_error(&error),
    };
    if cli.run.diagnostics.log_format == Some(LogFormat::Json) {
        exit::log_json();
    }
    if let Some(notice) = notice {
        exit::report(&format!("qwen: {notice}"));
    }
    match &cli.command {
        None => run_agent(&cli.run),
        Some(command) => subcommand(command),
    }
}

fn subcommand(command: &Subcommands) -> ExitCode {
    match command {
        #[cfg(feature = "fleet")]
        Subcommands::Sessions { action, bus } if bus.bus.is_some() => {
            sessions(|invocation, out| subcommands::sessions::shared::run(action, bus, invocation, out))
        }
        Subcommands::Sessions { action, .. } => {
            sessions(|invocation, out| subcommands::sessions::run(action, invocation, out))
        }
        Subcommands::Completions { shell } => {
            print_bytes(subcommands::completions::script(*shell).as_bytes())
        }
        Subcommands::CompleteValues { kind } => completion_values(*kind),
        Subcommands::Hub(args) if args.status => match hub::status(args) {
            Ok(text) => print_bytes(text.as_bytes()),
            Err(error) => fatal(Dialect::Qwen, None, &error),
        },
        Subcommands::Hub(args) => match hub::prepare(args) {
            Ok(prepared) => block_on(hub::run(prepared)),
            Err(error) => fatal(Dialect::Qwen, Some(Format::StreamJson), &error),
        },
        #[cfg(feature = "fleet")]
        Subcommands::Node(args) => match hub::node::prepare(args) {
            Ok(prepared) => block_on(hub::node::run(prepared)),
            Err(error) => fatal(Dialect::Qwen, None, &error),
        },
        #[cfg(feature = "fleet")]
        Subcommands::Bus { action } => bus_report(action),
        Subcommands::Serve(args) => match serve::prepare(args) {
            Ok(prepared) => block_on(serve::run(prepared)),
            Err(error) => fatal(Dialect::Qwen, None, &error),
        },
        Subcommands::Models(args) => {
            let listed = invocation().and_then(|mut invocation| {
                run_to_completion(subcommands::models::run(args, &mut invocation))?
            });
            match listed {
                Ok(text) => print_bytes(text.as_bytes()),
                Err(error) => fatal(Dialect::Qwen, None, &error),
            }
        }
        Subcommands::Doctor(args) => {
            let checked = invocation().and_then(|mut invocation| {
                run_to_completion(subcommands::doctor::run(args, &mut invocation))
            });
            match checked {
                Ok(Diagnosis { text, is_healthy }) => {
                    let printed = print_bytes(text.as_bytes());
                    if is_healthy { printed } else { ExitCode::FAILURE }
                }
                Err(error) => fatal(Dialect::Qwen, None, &error),
            }
        }
        Subcommands::Man => print_bytes(subcommands::manual::page().as_bytes()),
        Subcommands::Config(args) => printed(|invocation| subcommands::config::run(args, invocation)),
        Subcommands::Trust(args) => printed(|invocation| subcommands::trust::run(args, invocation)),
        Subcommands::Sandbox { json } => {
            let report = qwen_sandbox::report();
            let text = if *json { format!("{}\n", report.json()) } else { report.to_string() };
            let printed = print_bytes(text.as_bytes());
            if report.enforceable() { printed } else { ExitCode::from(44) }
        }
        Subcommands::Auth { action } => auth(action),
        Subcommands::Mcp { action: McpAction::List(args) } => mcp_list(args),
        Subcommands::Mcp { action: McpAction::Serve(args) } => match serve::mcp::prepare(args) {
            Ok(prepared) => block_on(serve::mcp::run(prepared)),
            Err(error) => fatal(Dialect::Qwen, None, &error),
        },
        Subcommands::Check(args) => ExitCode::from(subcommands::check::run(args)),
        Subcommands::View(args) => ExitCode::from(subcommands::view::run(args)),
        Subcommands::Schema { name } => schema(name.as_deref()),
        Subcommands::Graph { agent } => draw_graph(agent),
    }
}

/// Prints the graph of an agent.
fn draw_graph(agent: &str) -> ExitCode {
    match AgentName::parse(agent) {
        Some(agent) => print_bytes(qwen_thoughts::draw_graph(agent).as_bytes()),
        None => {
            let error = unknown_agent(agent);
            exit::report(&format!("qwen: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

#[cfg(feature = "fleet")]
fn bus_report(action: &crate::cli::BusAction) -> ExitCode {
    let report =
        invocation().and_then(|invocation| run_to_completion(subcommands::bus::run(action, &invocation))?);
    match report {
        Ok(report) => {
            let printed = print_bytes(report.text.as_bytes());
            if report.is_healthy { printed } else { ExitCode::FAILURE }
        }
        Err(error) => fatal(Dialect::Qwen, None, &error),
    }
}

fn completion_values(kind: crate::cli::CompletionKind) -> ExitCode {
    let values = invocation().and_then(|mut invocation| {
        run_to_completion(subcommands::completions::values(kind, &mut invocation))?
    });
    match values {
        Ok(text) => print_bytes(text.as_bytes()),
        Err(error) => fatal(Dialect::Qwen, None, &error),
    }
}

fn auth(action: &AuthAction) -> ExitCode {
    match invocation().and_then(|mut invocation| subcommands::auth::run(action, &mut invocation)) {
        Ok(AuthReport { text, is_configured }) => {
            let printed = print_bytes(text.as_bytes());
            if is_configured { printed } else { ExitCode::FAILURE }
        }
        Err(error) => fatal(Dialect::Qwen, None, &error),
    }
}

fn mcp_list(args: &McpListArgs) -> ExitCode {
    let listed = invocation()
        .and_then(|mut invocation| run_to_completion(subcommands::mcp::list(args, &mut invocation))?);
    match listed {
        Ok(ServerListing { text, all_usable }) => {
            let printed = print_bytes(text.as_bytes());
            if all_usable || !args.check { printed } else { ExitCode::FAILURE }
        }
        Err(error) => fatal(Dialect::Qwen, None, &error),
    }
}

fn sessions(
    run: impl FnOnce(
        &Invocation,
        &mut std::io::BufWriter<std::io::StdoutLock<'static>>,
    ) -> Result<(), SubcommandError>,
) -> ExitCode {
    let invocation = match invocation() {
        Ok(invocation) => invocation,
        Err(error) => return fatal(Dialect::Qwen, None, &error),
    };
    let mut stdout = std::io::BufWriter::new(std::io::stdout().lock());
    match run(&invocation, &mut stdout) {
        Ok(()) => ExitCode::SUCCESS,
        Err(SubcommandError::Error(error)) => {
            // Output that was written before an error must still be flushed.
            let _ = stdout.flush();
            fatal(Dialect::Qwen, None, &error)
        }
        Err(SubcommandError::Output(error)) => output_failed(&error),
    }
}

fn invocation() -> Result<Invocation, ErrorInfo> {
    Invocation::current().map_err(|error| {
        let message = format!("the working directory cannot be used: {error}");
        ErrorInfo::new(ErrorKind::Input, "no_working_directory", message)
    })
}

/// Prints a schema, or the names of all schemas.
fn schema(name: Option<&str>) -> ExitCode {
    let mut schemas = qwen_dialects::schemas();
    schemas.push(("settings", crate::settings::file::schema()));
    let Some(name) = name else {
        let names: String = schemas.iter().map(|(name, _)| format!("{name}\n")).collect();
        return print_bytes(names.as_bytes());
    };
    match schemas.iter().find(|(known, _)| *known == name) {
        Some((_, schema)) => print_bytes(format!("{:#}\n", schema.as_value()).as_bytes()),
        None => {
            exit::report(&format!("qwen: there is no schema '{name}'; 'qwen schema' lists them"));
            ExitCode::from(2)
        }
    }
}

/// Prints the output of a command, or its error.
fn printed(command: impl FnOnce(&mut Invocation) -> Result<String, ErrorInfo>) -> ExitCode {
    match invocation().and_then(|mut invocation| command(&mut invocation)) {
        Ok(text) => print_bytes(text.as_bytes()),
        Err(error) => fatal(Dialect::Qwen, None, &error),
    }
}

/// Runs a one-shot prompt or a worker.
fn run_agent(run: &Run) -> ExitCode {
    if run.acp.acp {
        return match acp::check(run) {
            Ok(()) => block_on(acp::run(run)),
            Err(error) => fatal(Dialect::Acp, None, &error),
        };
    }
    let mut invocation = match invocation() {
        Ok(invocation) => invocation,
        Err(error) => return fatal(Dialect::Qwen, None, &error),
    };
    let read = Layered::load(run, &mut invocation).and_then(|layered| Ok((layered.settings()?, layered)));
    let wire =
        match OutputWire::resolve(run, &invocation, read.as_ref().ok().map(|(settings, _)| &settings.output))
        {
            Ok(wire) => wire,
            Err(error) => {
                let (dialect, format) = guessed_wire();
                return fatal(dialect, format, &error);
            }
        };
    let config = read.and_then(|(settings, layered)| {
        if Config::needs_discovery(&invocation, &settings, &layered) {
            run_to_completion(Config::resolve_with_discovery(run, &invocation, settings, layered, &wire))?
        } else {
            Config::resolve(run, &invocation, settings, layered, &wire)
        }
    });
    let config = match config {
        Ok(config) => config,
        Err(error) => return fatal(wire.dialect, wire.format, &error),
    };
    exit::set_redactor(config.diagnostics.redactor.clone());
    match config.stream.supervision.commit_fd {
        Some(parent) => worker::report_warnings(parent, &config.diagnostics.warnings),
        None => {
            for warning in &config.diagnostics.warnings {
                exit::report(&format!("qwen: {warning}"));
            }
        }
    }
    retention::apply(&config);
    let tracing = config.diagnostics.tracing.clone();
    if config.stream.structured_input {
        block_on(traced(tracing, worker::run(Arc::new(config), &prompt::join_prompt_arguments(run))))
    } else if terminal::is_interactive(run, &config) {
        block_on(traced(tracing, terminal::run(run, &invocation, config)))
    } else {
        block_on(traced(tracing, oneshot::run(run, Arc::new(config))))
    }
}

/// Runs the work, then exports the remaining spans if tracing is on.
async fn traced(tracing: Option<Arc<Tracing>>, work: impl Future<Output = u8>) -> u8 {
    let code = work.await;
    if let Some(tracing) = tracing {
        tracing.close().await;
    }
    code
}

/// Uses a single thread: a worker waits for the model nearly all the time, and a second thread would cost
/// more than it gains.
pub(crate) fn run_to_completion<T>(work: impl Future<Output = T>) -> Result<T, ErrorInfo> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        let message = format!("the event loop cannot be started: {error}");
        ErrorInfo::new(ErrorKind::Internal, "no_runtime", message)
    })?;
    let done = runtime.block_on(work);
    // A thread that still waits for terminal input must not keep the process alive.
    runtime.shutdown_background();
    Ok(done)
}

/// Runs a role to completion and returns its exit code.
fn block_on(work: impl Future<Output = u8>) -> ExitCode {
    match run_to_completion(work) {
        Ok(code) => {
            restart::restart_if_requested();
            ExitCode::from(code)
        }
        Err(error) => fatal(Dialect::Qwen, None, &error),
    }
}

/// Reports a command-line error: as text on standard error, and also as an error record if the caller
/// requested JSON.
fn report_command_line_error(error: &clap::Error) -> ExitCode {
    let text = error.render();
    if !error.use_stderr() {
        return print_bytes(text.to_string().as_bytes());
    }
    let message = text.to_string();
    let message = message.trim().strip_prefix("error: ").unwrap_or(message.trim());
    let (dialect, format) = guessed_wire();
    fatal(dialect, format, &ErrorInfo::new(ErrorKind::Usage, "bad_flag", message))
}

/// The output format that the caller wants when the command line as a whole could not be parsed, judged by
/// the parts that can be.
fn guessed_wire() -> (Dialect, Option<Format>) {
    let readable =
        Cli::command().ignore_errors(true).args_override_self(true).try_get_matches_from(arguments());
    let cli = readable.and_then(|matches| Cli::from_arg_matches(&matches));
    let wire = cli
        .ok()
        .zip(Invocation::current().ok())
        .and_then(|(cli, invocation)| OutputWire::resolve(&cli.run, &invocation, None).ok());
    if let Some(OutputWire { dialect, format: Some(format) }) = wire {
        return (dialect, Some(format));
    }
    if arguments().get(1).is_some_and(|word| word == "hub") {
        return (Dialect::Qwen, Some(Format::StreamJson));
    }
    let wants_json = std::env::args_os().any(|arg| arg.to_string_lossy().contains("json"));
    (Dialect::Qwen, wants_json.then_some(Format::StreamJson))
}

/// Ends the process before a session starts: writes the dialect's error record to standard output if a
/// program reads it, and text to standard error.
fn fatal(dialect: Dialect, format: Option<Format>, error: &ErrorInfo) -> ExitCode {
    let mut error = error.clone();
    error.message = exit::redacted(&error.message).into();
    if let Some(format) = format {
        let info = StreamInfo {
            input_format: "text",
            model: "none".into(),
            version: env!("CARGO_PKG_VERSION"),
            seed: fastrand::u64(..),
            ..StreamInfo::new(dialect, format, SessionId::from_random(fastrand::u128(..)))
        };
        let event = Event {
            at: Timestamp::default(),
            scope: Scope::default(),
            body: Body::Fatal(Box::new(error.clone())),
        };
        let mut lines = Vec::new();
        encoder(&info).encode(&event, &mut lines);
        worker::report_failure(&error.message, memchr::memchr_iter(b'\n', &lines).count() as u64);
        let _ = print_bytes(&lines);
    }
    exit::report(&format!("qwen: {error}"));
    let kind = rustix::fs::fstat(rustix::stdio::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    if matches!(kind, Ok(FileType::Fifo | FileType::Socket)) {
        let drives = std::env::args_os().any(|arg| arg.to_string_lossy().starts_with("--input-format"));
        exit::drain_stdin(if drives { exit::HOST_GRACE } else { PIPE_GRACE });
    }
    ExitCode::from(exit::error_code(&error, dialect))
}

/// How long a failed start waits for a pipe that may carry a prompt.
const PIPE_GRACE: Duration = Duration::from_millis(50);

/// Writes to standard output. A closed pipe is a normal end and is not reported.
fn print_bytes(bytes: &[u8]) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output_failed(&error),
    }
}

/// The exit code when standard output cannot be written.
fn output_failed(error: &std::io::Error) -> ExitCode {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    exit::report(&format!("qwen: standard output: {error}"));
    ExitCode::FAILURE
}
