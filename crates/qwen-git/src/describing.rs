//! Settings that only describe a repository and make git run nothing.

/// Settings that git or a user writes for a new repository and that make git run or read nothing else. `*`
/// is the name in a section.
const DESCRIBING: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
        ],
    ),
    ("extensions", &["objectformat", "refstorage", "compatobjectformat", "partialclone"]),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("commit", &["gpgsign"]),
    ("pull", &["rebase", "ff"]),
    ("branch *", &["remote", "merge", "rebase"]),
    ("remote *", &["url", "fetch", "tagopt", "promisor", "partialclonefilter"]),
    ("submodule", &["active"]),
    ("submodule *", &["active", "url"]),
    ("advice", &["detachedhead"]),
    ("lfs", &["repositoryformatversion"]),
];

/// True if git's settings, as a text, only describe: no program is named, nothing else is read. What is not
/// understood does not.
pub fn only_describes(config: &str) -> bool {
    let mut allowed: &[&str] = &[];
    for line in config.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some(section) = header.strip_suffix(']').and_then(section) else { return false };
            let Some((_, keys)) = DESCRIBING.iter().find(|(name, _)| *name == section) else { return false };
            allowed = keys;
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let known = allowed.contains(&key.trim().to_ascii_lowercase().as_str());
        // A value may continue in the next line, or name a helper program instead of an address.
        if !known || value.contains(['\\', '"']) || value.contains("::") {
            return false;
        }
    }
    true
}

/// `core`, or `branch *` for `branch "main"`.
fn section(header: &str) -> Option<String> {
    let plain = |name: &str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-').then(|| name.to_ascii_lowercase())
    };
    let Some((name, quoted)) = header.split_once(' ') else { return plain(header) };
    let inner = quoted.trim().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains(['"', '\\', ']']) {
        return None;
    }
    Some(format!("{} *", plain(name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_new_repository_only_describe() {
        for config in [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
            "# a remark\n[user]\n\tname = A. U. Thor\n\temail = a@example.org\n",
            "[remote \"origin\"]\n\turl = https://example.org/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
            "[core]\n\tbare\n",
        ] {
            assert!(only_describes(config), "{config}");
        }
    }

    #[test]
    fn settings_that_run_or_read_something_do_not() {
        for config in [
            "[core]\n\tfsmonitor = touch x\n",
            "[core]\n\thooksPath = evil\n",
            "[core]\n\tpager = touch x\n",
            "[core] fsmonitor = touch x\n",
            "[include]\n\tpath = ../evil\n",
            "[includeIf \"gitdir:/\"]\n\tpath = ../evil\n",
            "[alias]\n\tst = !touch x\n",
            "[filter \"x\"]\n\tclean = touch x\n",
            "[remote \"origin\"]\n\turl = ext::sh -c touch% x\n",
            "[remote \"origin\"]\n\tuploadpack = touch x\n",
            "[user]\n\tname = a\\\n[core]\n\tfsmonitor = x\n",
            "[core]\nbare = false \\\n fsmonitor = x\n",
            "[branch \"a]\n[core]\nfsmonitor = x\n",
            "[extensions]\n\tworktreeConfig = true\n",
            "fsmonitor = x\n",
            "[core",
            "[core]]\nbare = true\n",
        ] {
            assert!(!only_describes(config), "{config}");
        }
    }

    /// The settings that git itself finds in a text; none when it refuses to read it.
    fn found_by_git(config: &str) -> Option<Vec<String>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, config.as_bytes()).unwrap();
        let mut git = std::process::Command::new("git");
        git.args(["config", "--list", "--name-only", "-z", "--no-includes", "--file"]).arg(file.path());
        let out = git.output().ok()?;
        let names = String::from_utf8_lossy(&out.stdout).into_owned();
        out.status.success().then(|| names.split_terminator('\0').map(str::to_owned).collect())
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { cases: 64, failure_persistence: None, ..Default::default() })]
        #[test]
        fn git_finds_nothing_else_in_what_only_describes(
            config in r#"((\[core\]|\[remote "[a\\"]?"\]|\[user\]| |\n|\t|\\|"|#|;|=|bare|url|name|fsmonitor = x|\[|\]|\r|a|::|\x00|\u{a0})?){0,12}"#,
        ) {
            if only_describes(&config) {
                let known = ["core.bare", "remote.a.url", "remote..url", "user.name"];
                for name in found_by_git(&config).unwrap_or_default() {
                    proptest::prop_assert!(known.contains(&name.as_str()), "{name} in {config:?}");
                }
            }
        }
    }
}
