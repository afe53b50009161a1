//! Converts local files that a prompt contains as media into references, because the model cannot read local
//! paths.

use percent_encoding::percent_decode_str;
use qwen_events::{Media, MediaSource, Part};

use super::at::at_reference;

/// Replaces local files (`file://…`, or a path) among the parts of a prompt by references, after the other
/// parts. The same rules decide about reading them as for every reference.
pub fn with_local_files(parts: Vec<Part>) -> Vec<Part> {
    let (mut kept_parts, mut files) = (Vec::with_capacity(parts.len()), Vec::new());
    for part in parts {
        let path = match &part {
            Part::Media(Media { source: MediaSource::Url(url), .. }) => local_path(url),
            _ => None,
        };
        match path {
            Some(path) => files.push(Part::Text(at_reference(&path).into())),
            None => kept_parts.push(part),
        }
    }
    kept_parts.append(&mut files);
    kept_parts
}

/// The path of a URL without a host; `None` if it cannot be written as a reference.
fn local_path(url: &str) -> Option<String> {
    let path = match url.strip_prefix("file://") {
        Some(rest) => {
            let escaped = rest.strip_prefix("localhost").unwrap_or(rest);
            percent_decode_str(escaped).decode_utf8().ok()?.into_owned()
        }
        None if url.contains("://") => return None,
        None => url.to_owned(),
    };
    (!path.is_empty() && !path.contains('"')).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_file_of_this_machine_or_is_left_alone() {
        for (url, path) in [
            ("file:///a/b%20c.png", Some("/a/b c.png")),
            ("file://localhost/a", Some("/a")),
            ("file:///50%", Some("/50%")),
            ("file:///a%+5", Some("/a%+5")),
            ("file:///%ff", None),
            ("file:///a%22b", None),
            ("file://", None),
            ("pictures/a.png", Some("pictures/a.png")),
            ("https://example.com/a.png", None),
        ] {
            assert_eq!(local_path(url).as_deref(), path, "{url}");
        }
    }
}
