//! Names of tenants.

/// True for `[A-Za-z0-9_-]{1,64}`, which is safe as a file name and as a token of a subject.
pub fn is_tenant_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::is_tenant_name;

    #[test]
    fn a_tenant_is_a_plain_word() {
        for good in ["a", "team-1", "A_b", &"x".repeat(64)] {
            assert!(is_tenant_name(good), "{good}");
        }
        for bad in ["", "a.b", ">", "a/b", "..", "ä", "a b", &"x".repeat(65)] {
            assert!(!is_tenant_name(bad), "{bad:?}");
        }
    }
}
