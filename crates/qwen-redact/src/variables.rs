//! Finds environment variables that hold secrets, by their names.

/// Returns the values of all variables that are named like a secret.
pub fn secret_values<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
    variables.into_iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value).collect()
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
}
