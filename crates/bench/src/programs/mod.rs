//! Small programs that the harness starts in addition to the subject, for comparison or for the subject to
//! use.

mod copy;
mod forks;
mod graph;
mod mcp;

pub use forks::{PLAIN, SCRIPT};

/// True if the harness is one of these programs under this name.
pub fn is_one(name: &str) -> bool {
    ["bashes", "copy", "forks", "graph", "mcp"].contains(&name)
}

/// Plays the program of this name.
pub fn run(name: &str, argument: &str) -> Result<(), String> {
    let count = || argument.parse().map_err(|_| format!("{name} wants a count, not {argument:?}"));
    match name {
        "copy" => copy::run(argument),
        "forks" => forks::run(forks::plain(), count()?),
        "bashes" => forks::run(forks::script(), count()?),
        "mcp" => mcp::run().map_err(|error| format!("mcp: {error}")),
        "graph" => graph::run(count()?),
        _ => Err(format!("there is no program {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::is_one;
    use crate::sections::ALL;

    #[test]
    fn no_section_has_the_name_of_a_program() {
        assert!(is_one("copy"));
        assert!(ALL.iter().all(|section| !is_one(section.name)));
    }
}
