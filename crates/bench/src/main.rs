//! `bench`: what a turn of the release binary costs, measured on real processes against the mock model.
//!
//! The harness itself stays small on purpose: the kernel counts the memory of whoever starts a program into
//! the program's peak. So the mock runs in its own process, and output is judged as it streams by.

mod baseline;
mod child;
mod mock;
mod options;
mod output;
mod process;
mod programs;
mod pty;
mod sections;
mod stats;
mod subject;
mod table;
mod worker;

use std::io::Write;
use std::process::ExitCode;

use options::Options;
use subject::Subject;
use table::Row;

/// What every section measures with.
struct Bench {
    subject: Subject,
    options: Options,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let result = match args.peek().map(String::as_str) {
        // The programs that the harness starts besides the subject are itself: nothing else has to be built.
        Some("mock-model") => mock_model::serve::run(args.skip(1)).map(|()| true),
        Some(name) if programs::is_one(name) => {
            let name = args.next().unwrap_or_default();
            programs::run(&name, args.next().as_deref().unwrap_or("")).map(|()| true)
        }
        _ => Options::parse(args).and_then(measure),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // If standard error is closed, the failure cannot be reported.
            let _ = writeln!(std::io::stderr(), "bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the table; whether everything could be measured and, with `--check`, met its target.
fn measure(options: Options) -> Result<bool, String> {
    let bench = Bench { subject: Subject::find()?, options };
    let mut out = std::io::stdout();
    let mut print = |text: String| {
        writeln!(out, "{text}")
            .and_then(|()| out.flush())
            .map_err(|error| format!("cannot print the table: {error}"))
    };
    print(table::HEAD.to_owned())?;
    let mut fine = true;
    for section in sections::ALL.iter().filter(|section| bench.options.wants(section.name)) {
        let rows = (section.measure)(&bench).unwrap_or_else(|error| vec![Row::failed(section.name, &error)]);
        for row in rows {
            fine &= !row.has_failed() && (row.is_met() || !bench.options.check);
            print(row.to_string())?;
        }
    }
    Ok(fine)
}
