//! Parses HTML tags and attributes leniently, as browsers do: any input gives a result.

/// Splits at the closing tag of an element: the text before it and the text after it.
pub(super) fn until_close<'a>(html: &'a str, name: &str) -> (&'a str, &'a str) {
    let mut from = 0;
    while let Some(at) = html[from..].find("</").map(|at| from + at) {
        let after = &html[at + 2..];
        if after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            let end = after.split_once('>').map_or("", |(_, after)| after);
            return (&html[..at], end);
        }
        from = at + 2;
    }
    (html, "")
}

pub(super) struct Tag<'a> {
    /// The name of the tag in lower case.
    pub name: String,
    pub closing: bool,
    attributes: &'a str,
}

impl<'a> Tag<'a> {
    /// Parses the tag at the start of `html` and returns the remaining text. `None` if it is not a tag.
    pub(super) fn read(html: &'a str) -> Option<(Self, &'a str)> {
        let inner = html.strip_prefix('<')?;
        let (closing, inner) = match inner.strip_prefix('/') {
            Some(inner) => (true, inner),
            None => (false, inner),
        };
        if !inner.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let name_end =
            inner.find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>')).unwrap_or(inner.len());
        let (name, rest) = inner.split_at(name_end);
        let mut attributes = Attributes(rest);
        while attributes.next().is_some() {}
        let end = rest.len() - attributes.0.len();
        let after = attributes.0.strip_prefix('>').unwrap_or(attributes.0);
        Some((Self { name: name.to_ascii_lowercase(), closing, attributes: &rest[..end] }, after))
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        Attributes(self.attributes)
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// The attributes of a tag, up to the `>` that closes it.
struct Attributes<'a>(&'a str);

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let space = |c: char| c.is_ascii_whitespace();
        self.0 = self.0.trim_start_matches(|c| space(c) || c == '/');
        if self.0.is_empty() || self.0.starts_with('>') {
            return None;
        }
        // The first character always belongs to the name.
        let first = self.0.chars().next().map_or(0, char::len_utf8);
        let end = self.0[first..]
            .find(|c: char| space(c) || matches!(c, '=' | '>' | '/'))
            .map_or(self.0.len(), |at| at + first);
        let (name, rest) = self.0.split_at(end);
        let Some(value) = rest.trim_start_matches(space).strip_prefix('=') else {
            self.0 = rest;
            return Some((name, ""));
        };
        let value = value.trim_start_matches(space);
        let (value, rest) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            _ => value.split_at(value.find(|c: char| space(c) || c == '>').unwrap_or(value.len())),
        };
        self.0 = rest;
        Some((name, value))
    }
}
