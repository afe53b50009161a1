//! The subcommands, one file each.

pub mod auth;
#[cfg(feature = "fleet")]
pub mod bus;
pub mod check;
pub mod completions;
pub mod config;
pub mod doctor;
mod history;
mod lines;
pub mod manual;
pub mod mcp;
pub mod models;
pub mod sessions;
pub mod trust;
pub mod view;

use qwen_dialects::Dialect;

use crate::runtime::exit;

/// The dialect that the command line names. An unknown name is reported, and the exit code is returned.
fn dialect(word: Option<&str>) -> Result<Option<Dialect>, u8> {
    let Some(word) = word else { return Ok(None) };
    let dialect = Dialect::parse(word);
    if dialect.is_none() {
        let words = Dialect::ALL.map(Dialect::name).join(", ");
        exit::report(&format!("qwen: there is no dialect '{word}'; --dialect takes one of {words}"));
        return Err(2);
    }
    Ok(dialect)
}
