//! The harness's own arguments.

/// What the harness understands.
const USAGE: &str = "\
bench [--runs N] [--chunks N] [--quick] [--check] [--bless] [SECTION…]

Measures the binary that QWEN_BIN names, or `qwen` next to this program, and prints a table.
  SECTION     only these (default: all): cold, configured, flood, latency, tools, grep, turns, idle, answers,
              steps, thoughts, hub, acp, serve, tenants, readers, peers, crowd, terminal, instructions
  --runs N    runs of a cold turn after the warm-up; a flood gets a quarter of them (default 20)
  --chunks N  chunks of a flood (default 20000)
  --quick     small counts, to see that everything can be measured; the numbers mean little
  --check     fail when a target is missed
  --bless     make the instruction counts of today the ones to compare with";

pub struct Options {
    pub runs: usize,
    pub chunks: usize,
    pub quick: bool,
    pub check: bool,
    pub bless: bool,
    sections: Vec<String>,
}

impl Options {
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options =
            Self { runs: 20, chunks: 20_000, quick: false, check: false, bless: false, sections: Vec::new() };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut count = || {
                let value = args.next().and_then(|value| value.parse::<usize>().ok());
                value.filter(|count| *count > 0).ok_or_else(|| format!("{arg} wants a count\n\n{USAGE}"))
            };
            match arg.as_str() {
                "--runs" => options.runs = count()?,
                "--chunks" => options.chunks = count()?,
                "--quick" => (options.quick, options.runs, options.chunks) = (true, 2, 1000),
                "--check" => options.check = true,
                "--bless" => options.bless = true,
                name if crate::sections::ALL.iter().any(|section| section.name == name) => {
                    options.sections.push(arg);
                }
                _ => return Err(format!("{arg} is nothing that bench knows\n\n{USAGE}")),
            }
        }
        Ok(options)
    }

    /// The number of measurements: `usual`, or `few` for a quick run.
    pub fn count(&self, usual: usize, few: usize) -> usize {
        if self.quick { few } else { usual }
    }

    /// True if this section was requested.
    pub fn wants(&self, section: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|name| name == section)
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, USAGE};
    use crate::sections::ALL;

    #[test]
    fn every_section_is_named_in_the_usage_and_can_be_asked_for() {
        for section in ALL {
            assert!(USAGE.contains(section.name), "{}", section.name);
            let options = Options::parse([section.name.to_owned()]).unwrap();
            assert!(ALL.iter().all(|other| options.wants(other.name) == (other.name == section.name)));
        }
    }

    #[test]
    fn a_quick_look_takes_few_of_everything() {
        let count =
            |args: &[&str]| Options::parse(args.iter().map(ToString::to_string)).unwrap().count(1000, 3);
        assert_eq!((count(&[]), count(&["--quick"])), (1000, 3));
    }
}
