//! `mock-model`: see [`mock_model::serve`].

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match mock_model::serve::run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // With standard error closed there is no other channel to report this on.
            let _ = writeln!(std::io::stderr(), "mock-model: {error}");
            ExitCode::FAILURE
        }
    }
}
