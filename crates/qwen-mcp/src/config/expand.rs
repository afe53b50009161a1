//! Expands variables in a server's configuration.

/// Expands `${NAME}`, `${NAME:-default}` and `$NAME`. The error is the name of a variable that has no value;
/// a plain `$NAME` without a value stays as it is, because it may be a literal dollar sign.
pub fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        expanded.push_str(before);
        let braced = from.strip_prefix("${").and_then(|inner| inner.split_once('}'));
        if let Some((inner, after)) = braced {
            let (name, default) = match inner.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inner, None),
            };
            match value(name)
                .filter(|value| !value.is_empty() || default.is_none())
                .or(default.map(str::to_owned))
            {
                Some(value) => expanded.push_str(&value),
                None => return Err(name.to_owned()),
            }
            rest = after;
            continue;
        }
        let name_end = from[1..]
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .map_or(from.len(), |at| at + 1);
        let (written, after) = from.split_at(name_end);
        match value(&written[1..]).filter(|_| written.len() > 1) {
            Some(value) => expanded.push_str(&value),
            None => expanded.push_str(written),
        }
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_and_other_dollars_stay() {
        let value = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        for (text, expanded) in [
            ("plain", Ok("plain")),
            ("${A}-$A", Ok("1-1")),
            ("x${A}y${A}", Ok("x1y1")),
            ("${B:-two}", Ok("two")),
            ("${A:-two}", Ok("1")),
            ("${B:-}", Ok("")),
            ("${EMPTY:-x}", Ok("x")),
            ("${EMPTY}", Ok("")),
            ("${B}", Err("B")),
            ("pa$word$", Ok("pa$word$")),
            ("^x$", Ok("^x$")),
            ("$$A", Ok("$1")),
            ("${unclosed", Ok("${unclosed")),
            ("", Ok("")),
        ] {
            assert_eq!(expand(text, value), expanded.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }
}
