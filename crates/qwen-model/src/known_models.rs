//! Context windows, answer limits and prices of common models. The data is in `known_models.tsv`; settings
//! override it.

/// What is known about a model by its name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownModel {
    /// The size of the window in tokens.
    pub context_window: u64,
    /// The longest answer, in tokens.
    pub max_output: u64,
    /// `None` for models that anyone may serve at any price.
    pub price: Option<KnownPrice>,
    /// `None` for models whose thinking is not controlled by Anthropic's wire.
    pub thinking: Option<ThinkingSupport>,
}

/// How a Claude model thinks, which decides the requests that it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingSupport {
    /// Not at all; requests must not ask for thinking.
    Never,
    /// Up to a number of tokens that the request sets.
    Budget,
    /// As much as the model decides; a request can turn it off, and sets the effort.
    Adaptive,
    /// As much as the model decides; it cannot be turned off.
    Always,
}

/// A price list, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownPrice {
    pub input: f64,
    pub output: f64,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
}

const TABLE: &str = include_str!("known_models.tsv");

/// The longest name that a row may have, in bytes.
const MAX_NAME: usize = 64;

/// Finds a model by the longest name in the table that its own name begins with. Prefixes of gateways, such as
/// `anthropic/` or `us.anthropic.`, are ignored.
pub fn find_known_model(name: &str) -> Option<KnownModel> {
    let name = name.trim().to_ascii_lowercase();
    let after_path = name.rsplit('/').next().unwrap_or(&name);
    let after_gateway = after_path.rsplit_once("anthropic.").map(|(_, model)| model);
    find_longest(after_path).or_else(|| find_longest(after_gateway?))
}

/// Finds the longest name that is `name` or that `name` continues after a separator: `o1` is not the beginning of `o12`.
fn find_longest(name: &str) -> Option<KnownModel> {
    let separators = name.char_indices().rev().filter(|(_, next)| !next.is_ascii_alphanumeric());
    let ends = std::iter::once(name.len()).chain(separators.map(|(at, _)| at));
    ends.filter(|end| (1..=MAX_NAME).contains(end)).find_map(|end| find_row(&name[..end]))
}

fn find_row(name: &str) -> Option<KnownModel> {
    if name.contains(char::is_control) {
        return None;
    }
    let (_, rest) = TABLE.split_once(&format!("\n{name}\t"))?;
    read_row(rest.lines().next()?)
}

fn read_row(row: &str) -> Option<KnownModel> {
    let mut columns = row.split('\t');
    let (window, output) = (columns.next()?.parse().ok()?, columns.next()?.parse().ok()?);
    let mut dollars = || columns.next().and_then(|text| text.parse::<f64>().ok());
    let (input, answer, cache_read, cache_write) = (dollars(), dollars(), dollars(), dollars());
    let price =
        input.zip(answer).map(|(input, output)| KnownPrice { input, output, cache_read, cache_write });
    let thinking = columns.next().and_then(ThinkingSupport::parse);
    Some(KnownModel { context_window: window, max_output: output, price, thinking })
}

impl ThinkingSupport {
    fn parse(column: &str) -> Option<Self> {
        match column {
            "none" => Some(Self::Never),
            "budget" => Some(Self::Budget),
            "adaptive" => Some(Self::Adaptive),
            "always" => Some(Self::Always),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_complete_and_plausible() {
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            assert_eq!(line.split('\t').count(), 8, "{line}");
            let name = line.split('\t').next().unwrap();
            assert!(name.len() <= MAX_NAME, "{line}");
            let model = find_known_model(name).unwrap();
            assert!(model.max_output <= model.context_window, "{line}");
            assert!(model.price.is_none_or(|price| price.output > price.input), "{line}");
            assert_eq!(model.thinking.is_some(), line.starts_with("claude-"), "{line}");
        }
    }

    #[test]
    fn names_with_dates_versions_and_gateway_prefixes_are_found() {
        let price =
            |name: &str| find_known_model(name).and_then(|model| model.price).map(|price| price.input);
        for (name, input) in [
            ("claude-opus-4-5-20251101", Some(5.0)),
            ("claude-opus-4-1-20250805", Some(15.0)),
            ("claude-opus-5-5", Some(4.0)),
            ("claude-sonnet-4-6", Some(3.0)),
            ("anthropic.claude-sonnet-5-20260601-v1:0", Some(2.0)),
            ("gpt-5.4-mini", Some(0.75)),
            ("anthropic/claude-sonnet-4-5", Some(3.0)),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", Some(1.0)),
            ("gpt-5-mini-2025-08-07", Some(0.25)),
            ("models/gemini-2.5-flash-lite", Some(0.1)),
            ("Qwen/Qwen3-Coder-480B-A35B", None),
            ("qwen3-coder-plus", Some(1.0)),
            ("o12", None),
            ("my-model", None),
        ] {
            assert_eq!(price(name), input, "{name}");
        }
        assert_eq!(find_known_model("qwen3-coder").map(|model| model.context_window), Some(262_144));
    }
}
