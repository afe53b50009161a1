//! Path patterns: a leading `/` is the workspace, `//` the file system, `~/` home, anything else the working
//! directory.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use globset::{Glob, GlobBuilder, GlobMatcher};

use crate::paths::workspace::{ResolvedPath, Workspace};

/// A pattern for paths.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    anchor: Anchor,
    /// How many directories above the anchor it begins.
    up: usize,
    exact: LazyGlob,
    /// What a refusal covers besides: the directory that holds what is meant, and a bare name at any depth.
    wide: Vec<LazyGlob>,
    /// The leading directories of the pattern, up to the first wildcard.
    literal_start: PathBuf,
    /// True if the pattern has no wildcard.
    is_literal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    Workspace,
    Root,
    Home,
    WorkingDirectory,
}

impl PathPattern {
    pub(crate) fn parse(pattern: &str) -> Option<Self> {
        let (anchor, mut rest) = if let Some(rest) = pattern.strip_prefix("//") {
            (Anchor::Root, rest)
        } else if let Some(rest) = pattern.strip_prefix('/') {
            (Anchor::Workspace, rest)
        } else if let Some(rest) = pattern.strip_prefix("~/") {
            (Anchor::Home, rest)
        } else {
            (Anchor::WorkingDirectory, pattern)
        };
        let mut up = 0;
        loop {
            if let Some(stripped) = rest.strip_prefix("./") {
                rest = stripped;
            } else if let Some(stripped) = rest.strip_prefix("../") {
                rest = stripped;
                up += 1;
            } else {
                break;
            }
        }
        let rest = rest.trim_start_matches('/');
        let whole =
            if rest.is_empty() || rest.ends_with('/') { format!("{rest}**") } else { rest.to_owned() };
        let mut wide = Vec::new();
        let directory = whole.strip_suffix("/**").unwrap_or(&whole);
        wide.push(glob(directory)?);
        if !directory.contains('/') && anchor == Anchor::WorkingDirectory && up == 0 {
            wide.push(glob(&format!("**/{directory}"))?);
        }
        let spelt_out = |part: &&str| !part.contains(['*', '?', '[', ']', '{', '}', '\\']);
        let literal_start: PathBuf = directory.split('/').take_while(spelt_out).collect();
        let is_literal = directory.split('/').all(|part| spelt_out(&part));
        Some(Self { anchor, up, exact: glob(&whole)?, wide, literal_start, is_literal })
    }

    /// The leading directories of the pattern, up to the first wildcard.
    pub(crate) fn literal_start(&self) -> &Path {
        &self.literal_start
    }

    /// True if the pattern has no wildcard.
    pub(crate) fn is_literal(&self) -> bool {
        self.is_literal
    }

    /// True if it means a name at any depth.
    pub(crate) fn is_a_bare_name(&self) -> bool {
        self.wide.len() > 1
    }

    /// True if a refusal means just this path, given from where the pattern begins.
    pub(crate) fn means(&self, rest: &Path) -> bool {
        self.exact.is_match(rest) || self.wide.iter().any(|wide| wide.is_match(rest))
    }

    /// True if a place is meant, in both of its forms.
    pub(crate) fn allows(&self, place: &ResolvedPath, workspace: &Workspace, cwd: &Path) -> bool {
        let bases = self.bases(workspace, cwd);
        place.real.is_some()
            && place.forms().all(|path| {
                bases.iter().any(|base| path.strip_prefix(base).is_ok_and(|rest| self.exact.is_match(rest)))
            })
    }

    /// True if a place, or something above it, is meant, in either of its forms.
    pub(crate) fn forbids(&self, place: &ResolvedPath, workspace: &Workspace, cwd: &Path) -> bool {
        let bases = self.bases(workspace, cwd);
        place.forms().any(|path| {
            bases.iter().filter_map(|base| path.strip_prefix(base).ok()).any(|rest| {
                self.exact.is_match(rest)
                    || rest
                        .ancestors()
                        .filter(|above| !above.as_os_str().is_empty())
                        .any(|above| self.wide.iter().any(|wide| wide.is_match(above)))
            })
        })
    }

    /// True if the pattern names absolute paths in the workspace, so that it does not cover a copy of the workspace.
    pub(crate) fn is_fixed_in(&self, workspace: &Workspace) -> bool {
        let base = match self.anchor {
            Anchor::Workspace | Anchor::WorkingDirectory => return false,
            Anchor::Root => Path::new("/"),
            Anchor::Home => workspace.home().unwrap_or(Path::new("/")),
        };
        let start = base.join(&self.literal_start);
        workspace.roots().iter().any(|root| root.starts_with(&start) || start.starts_with(root))
    }

    pub(crate) fn bases(&self, workspace: &Workspace, cwd: &Path) -> Vec<PathBuf> {
        let mut bases = match self.anchor {
            Anchor::Workspace => workspace.roots().to_vec(),
            Anchor::Root => vec![PathBuf::from("/")],
            Anchor::Home => workspace.home().map(Path::to_owned).into_iter().collect(),
            Anchor::WorkingDirectory => Vec::new(),
        };
        if matches!(self.anchor, Anchor::Home | Anchor::WorkingDirectory) {
            let base = if self.anchor == Anchor::Home { bases.pop() } else { Some(cwd.to_owned()) };
            let place = base.map(|base| workspace.place(&base, cwd));
            bases = place.iter().flat_map(ResolvedPath::forms).map(Path::to_owned).collect();
        }
        if matches!(self.anchor, Anchor::Workspace | Anchor::WorkingDirectory) {
            bases.extend_from_slice(workspace.mirrors());
        }
        for base in &mut bases {
            for _ in 0..self.up {
                base.pop();
            }
        }
        bases
    }
}

/// A pattern that is compiled when it is first needed: most rules of a session are never used.
#[derive(Debug, Clone)]
struct LazyGlob {
    glob: Glob,
    matcher: OnceLock<GlobMatcher>,
}

impl LazyGlob {
    fn is_match(&self, path: &Path) -> bool {
        self.matcher.get_or_init(|| self.glob.compile_matcher()).is_match(path)
    }
}

fn glob(pattern: &str) -> Option<LazyGlob> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build().ok()?;
    Some(LazyGlob { glob, matcher: OnceLock::new() })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::PathPattern;
    use crate::paths::workspace::Workspace;

    #[test]
    fn a_pattern_means_the_paths_that_its_beginning_says() {
        let workspace = Workspace::new([PathBuf::from("/nowhere/w")], Some(PathBuf::from("/nowhere/home")));
        let cwd = Path::new("/nowhere/w/sub");
        let cases = [
            // pattern, path, allowed, forbidden
            ("/src/**", "/nowhere/w/src/a/b.rs", true, true),
            ("/src/**", "/nowhere/w/sub/src/a.rs", false, false),
            ("/src/**", "/nowhere/w/src", false, true),
            ("/src/*.rs", "/nowhere/w/src/a.rs", true, true),
            ("/src/*.rs", "/nowhere/w/src/a/b.rs", false, false),
            ("/src", "/nowhere/w/src/a.rs", false, true),
            ("/src/", "/nowhere/w/src/a.rs", true, true),
            ("//etc/**", "/etc/passwd", true, true),
            ("//etc/**", "/nowhere/w/etc/passwd", false, false),
            ("~/.ssh/**", "/nowhere/home/.ssh/id", true, true),
            ("~/.ssh/**", "/nowhere/w/.ssh/id", false, false),
            ("secret/**", "/nowhere/w/sub/secret/x", true, true),
            ("secret/**", "/nowhere/w/secret/x", false, false),
            ("./a.txt", "/nowhere/w/sub/a.txt", true, true),
            ("../a.txt", "/nowhere/w/a.txt", true, true),
            ("../a.txt", "/nowhere/w/sub/a.txt", false, false),
            (".env", "/nowhere/w/sub/.env", true, true),
            (".env", "/nowhere/w/sub/deep/.env", false, true),
            ("*.pem", "/nowhere/w/sub/deep/key.pem", false, true),
            ("**/*.pem", "/nowhere/w/sub/deep/key.pem", true, true),
            ("/src/**", "/nowhere/w/src/../other", false, false),
        ];
        for (pattern, path, allowed, forbidden) in cases {
            let parsed = PathPattern::parse(pattern).unwrap();
            let place = workspace.place(Path::new(path), cwd);
            assert_eq!(parsed.allows(&place, &workspace, cwd), allowed, "{pattern} allows {path}");
            assert_eq!(parsed.forbids(&place, &workspace, cwd), forbidden, "{pattern} forbids {path}");
        }
    }
}
