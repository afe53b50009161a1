//! The entry point of the program; everything else is in the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    qwen::main()
}
