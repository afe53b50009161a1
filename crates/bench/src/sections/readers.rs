//! A reader of a kernel that stops reading: what the kernel's other sessions notice of it.

use std::time::Duration;

use mock_model::monotonic_ns;
use qwen_kernel::{AgentManager, AgentOptions, Session, SessionOptions};
use serde_json::json;

use crate::Bench;
use crate::mock::Mock;
use crate::output::CHUNK_TEXT;
use crate::stats::percentile;
use crate::subject::IsolatedHome;
use crate::table::Row;

const RATIO: f64 = 1.05;
/// How long the unread session has to fill its buffers.
const STALL: Duration = Duration::from_secs(2);
/// Pairs of kernels that are compared, because the processors on which their processes run change the times,
/// and the requests to each kernel.
const PAIRS: usize = 8;
const REQUESTS: usize = 2000;

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start a runtime: {error}"))?;
    runtime.block_on(compare(bench))
}

/// A kernel in this process, with separate directories.
fn kernel(bench: &Bench, mock: &Mock, home: &IsolatedHome) -> Result<AgentManager, String> {
    let variables = home.variables(mock).map(|(name, value)| (name.to_owned(), Some(value)));
    let options = AgentOptions {
        binary_path: Some(bench.subject.path().to_owned()),
        include_partial_messages: true,
        state_dir: Some(home.work().join("state")),
        session: SessionOptions {
            cwd: Some(home.work().display().to_string()),
            env: variables.into(),
            ..SessionOptions::default().model("m")
        },
        ..AgentOptions::default()
    };
    AgentManager::start(options).map_err(|error| error.to_string())
}

async fn open(kernel: &AgentManager) -> Result<Session, String> {
    kernel.create_session(SessionOptions::default()).await.map_err(|error| error.to_string())
}

/// A request to a session's worker and its answer, in microseconds.
async fn ask(session: &Session) -> Result<f64, String> {
    let began = monotonic_ns();
    session.request("get_available_models", json!({})).await.map_err(|error| error.to_string())?;
    #[expect(clippy::cast_precision_loss, reason = "times are short")]
    let took = (monotonic_ns() - began) as f64 / 1e3;
    Ok(took)
}

/// The times of requests to one session, in microseconds.
#[derive(Default)]
struct Times {
    /// In a kernel that has no other session.
    alone: Vec<f64>,
    /// In a kernel with a session that no client reads.
    beside: Vec<f64>,
}

/// Alternates between a session that is alone in its kernel and one next to an unread session, so that other
/// load affects both equally.
async fn alternate(bench: &Bench, mock: &Mock, times: &mut Times) -> Result<(), String> {
    let (first_home, second_home) = (IsolatedHome::fresh()?, IsolatedHome::fresh()?);
    let (first, second) = (kernel(bench, mock, &first_home)?, kernel(bench, mock, &second_home)?);
    let (alone, neighbour, mut unread) = (open(&first).await?, open(&second).await?, open(&second).await?);
    let stream = unread.stream("hi").map_err(|error| error.to_string())?;
    tokio::time::sleep(STALL).await;
    for _ in 0..bench.options.count(REQUESTS, 20) {
        times.alone.push(ask(&alone).await?);
        times.beside.push(ask(&neighbour).await?);
    }
    drop(stream);
    first.close().await;
    second.close().await;
    Ok(())
}

async fn compare(bench: &Bench) -> Result<Vec<Row>, String> {
    let chunks = (bench.options.chunks * 10).to_string();
    let mock = Mock::start(&["--chunks", &chunks, "--chunk-text", CHUNK_TEXT, "--write-size", "many"])?;
    let mut times = Times::default();
    for _ in 0..bench.options.count(PAIRS, 1) {
        alternate(bench, &mock, &mut times).await?;
    }
    let (alone, beside) = (percentile(&mut times.alone, 0.99), percentile(&mut times.beside, 0.99));
    Ok(vec![
        Row::without_target("kernel: a request of one session, p99", alone / 1e3, "ms"),
        Row::at_most("kernel: — beside a reader that stopped, times that", beside / alone, "×", RATIO),
    ])
}
