//! `domain:` patterns for fetching.

/// A pattern for the host of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPattern {
    host: String,
    subdomains_only: bool,
}

impl HostPattern {
    pub(crate) fn parse(pattern: &str) -> Option<Self> {
        let host = pattern.strip_prefix("domain:")?.trim().trim_end_matches('.').to_ascii_lowercase();
        let (host, subdomains_only) = match host.strip_prefix("*.") {
            Some(host) => (host.to_owned(), true),
            None => (host, false),
        };
        let plain = !host.is_empty()
            && host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']'));
        plain.then_some(Self { host, subdomains_only })
    }

    /// True if an address is certainly on this host.
    pub(crate) fn allows(&self, url: &str) -> bool {
        // A URL that parsers may read differently is not certain.
        if url.contains(['\\', '@'])
            || url.chars().any(|character| character.is_control() || character.is_whitespace())
        {
            return false;
        }
        host(url).is_some_and(|host| if self.subdomains_only { self.holds(&host) } else { host == self.host })
    }

    /// True if an address may be on this host or one below it.
    pub(crate) fn forbids(&self, url: &str) -> bool {
        host(url).is_none_or(|host| host == self.host || self.holds(&host))
            || url.to_ascii_lowercase().split(['/', '@', '\\', '?', '#', ':']).any(|part| part == self.host)
    }

    fn holds(&self, host: &str) -> bool {
        host.strip_suffix(self.host.as_str()).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
    }
}

/// The host of an address, in small letters.
fn host(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().split_once("://")?;
    if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
        return None;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let authority = authority.rsplit('@').next()?;
    let host = match authority.strip_prefix('[') {
        Some(rest) => format!("[{}]", rest.split(']').next()?),
        None => authority.split(':').next()?.to_owned(),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::HostPattern;

    #[test]
    fn an_allowed_host_is_that_host_and_no_look_alike() {
        let pattern = HostPattern::parse("domain:example.com").unwrap();
        for url in ["https://example.com", "http://EXAMPLE.com:8080/a?b#c", "https://example.com./x"] {
            assert!(pattern.allows(url), "{url}");
        }
        for url in [
            "https://example.com.evil.org/",
            "https://evil.org/example.com",
            "https://example.com@evil.org/",
            "https://evil.org\\@example.com/",
            "https://sub.example.com/",
            "https://notexample.com/",
            "file:///example.com",
            "example.com",
            "https://example.com\t.evil.org",
        ] {
            assert!(!pattern.allows(url), "{url}");
        }
        assert!(HostPattern::parse("domain:*.example.com").unwrap().allows("https://sub.example.com/"));
        assert!(!HostPattern::parse("domain:*.example.com").unwrap().allows("https://example.com/"));
    }

    #[test]
    fn a_forbidden_host_is_forbidden_with_all_below_it_and_in_disguise() {
        let pattern = HostPattern::parse("domain:evil.org").unwrap();
        for url in [
            "https://evil.org/",
            "https://a.b.evil.org/",
            "https://good.com@evil.org/",
            "https://evil.org\\@good.com/",
            "not an address",
        ] {
            assert!(pattern.forbids(url), "{url}");
        }
        assert!(!pattern.forbids("https://notevil.org/"));
    }
}
