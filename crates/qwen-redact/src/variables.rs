//! Finds environment variables that hold secrets, by their names.

/// Returns the values of all variables that are named like a secret, and the passwords in addresses that
/// other variables hold (`DATABASE_URL`, `HTTPS_PROXY`).
pub fn secret_values<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
    let secret = |(name, value)| if is_secret(name) { Some(value) } else { url_password(value) };
    variables.into_iter().filter_map(secret).collect()
}

/// The password of an address such as `postgres://user:password@host/name`.
pub fn url_password(text: &str) -> Option<&str> {
    // Few values have this character, and it is found faster than the rest.
    text.contains('@').then_some(())?;
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty()).then_some(password)
}

/// True if a variable of this name holds a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    // These hold the location of a secret, or are public.
    if ["_FILE", "_PATH", "_DIR", "PUBLIC_KEY"].iter().any(|end| name.ends_with(end)) {
        return false;
    }
    ["_KEY", "_TOKEN", "_SECRET"].iter().any(|end| name.ends_with(end)) || name.contains("PASSWORD")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_which_values_are_secret() {
        for name in [
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "CLIENT_SECRET",
            "DB_PASSWORD",
            "PASSWORD",
            "MY_PASSWORD_2",
            "npm_config_token_TOKEN",
            "aws_secret_access_key",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in
            ["PATH", "KEYBOARD", "TOKENS", "SSH_PUBLIC_KEY", "PASSWORD_FILE", "PASSWORD_STORE_DIR", "MONKEY"]
        {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn the_password_of_an_address_is_secret() {
        for (text, password) in [
            ("postgres://bob:p4ss@host/db", Some("p4ss")),
            ("http://bob:a:b@host:8080", Some("a:b")),
            ("http://:only@host?x=1", Some("only")),
            ("https://bob@host/", None),
            ("https://bob:@host/", None),
            ("https://host:8080/a@b", None),
            ("https://host/?next=http://a:b@c", None),
            ("bob:p4ss@host", None),
            ("", None),
        ] {
            assert_eq!(url_password(text), password, "{text}");
        }
        let secrets = secret_values([("A_KEY", "one"), ("DATABASE_URL", "x://u:two@h"), ("HOME", "/root")]);
        assert_eq!(secrets, ["one", "two"]);
    }
}
