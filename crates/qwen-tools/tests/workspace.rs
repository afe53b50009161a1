//! The workspace boundary, tried with every spelling of a path.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use qwen_tools::workspace::{PathError, Workspace};
use rustix::fs::{CWD, FileType, Mode, mknodat};

const SECRET: &str = "the secret outside";

/// A workspace with every kind of trap in it, next to something that must not be reached.
struct Field {
    directory: tempfile::TempDir,
}

impl Field {
    fn new() -> Self {
        let field = Self { directory: tempfile::tempdir().unwrap() };
        let (inside, outside) = (field.inside(), field.outside());
        fs::create_dir_all(inside.join("a/b")).unwrap();
        fs::create_dir_all(outside.join("d")).unwrap();
        fs::write(outside.join("secret"), SECRET).unwrap();
        fs::write(outside.join("d/secret"), SECRET).unwrap();
        fs::write(inside.join("file"), "plain").unwrap();
        fs::write(inside.join("a/b/file"), "plain").unwrap();
        symlink("../outside", inside.join("out")).unwrap();
        symlink(&outside, inside.join("abs_out")).unwrap();
        symlink("../outside/secret", inside.join("secret")).unwrap();
        symlink("../outside/new", inside.join("dangling")).unwrap();
        symlink("a/b", inside.join("in")).unwrap();
        symlink(inside.join("a"), inside.join("abs_in")).unwrap();
        symlink("/proc/self/cwd", inside.join("magic")).unwrap();
        symlink("/proc/self/environ", inside.join("environ")).unwrap();
        symlink("/dev/zero", inside.join("zero")).unwrap();
        symlink("circle", inside.join("circle")).unwrap();
        mknodat(CWD, inside.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        field
    }

    fn inside(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("inside")
    }

    fn outside(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("outside")
    }

    fn workspace(&self) -> Workspace {
        Workspace::new(&self.inside(), &[]).unwrap()
    }

    fn read(&self, path: &str) -> Result<String, PathError> {
        let mut text = String::new();
        self.workspace().open_file(path)?.file.read_to_string(&mut text).unwrap();
        Ok(text)
    }

    fn write(&self, path: &str) -> Result<PathBuf, PathError> {
        let target = self.workspace().target(path)?;
        let path = target.path.clone();
        target.write(b"written")?;
        Ok(path)
    }

    /// All that is outside, to be compared.
    fn state_outside(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let mut found = Vec::new();
        let mut open = vec![self.directory.path().to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.file_name() == Some("inside".as_ref()) {
                    continue;
                }
                if path.is_dir() {
                    open.push(path.clone());
                }
                found.push((path.clone(), fs::read(&path).ok()));
            }
        }
        found.sort();
        found
    }
}

#[test]
fn files_in_the_workspace_are_reached_by_every_valid_path() {
    let field = Field::new();
    let absolute = field.inside().join("a/b/file").display().to_string();
    for path in [
        "a/b/file",
        "./a//b/./file",
        "a/../a/b/file",
        "in/file",
        "abs_in/b/file",
        "../inside/a/b/file",
        &absolute,
    ] {
        assert_eq!(field.read(path).unwrap(), "plain", "{path}");
    }
}

#[test]
fn reading_outside_the_workspace_is_refused() {
    let field = Field::new();
    let absolute = field.outside().join("secret").display().to_string();
    for path in [
        "../outside/secret",
        "../../../../../../etc/passwd",
        "/etc/passwd",
        &absolute,
        "secret",
        "out/secret",
        "abs_out/secret",
        "a/../../outside/secret",
        "in/../../../outside/secret",
        "magic/file",
        "environ",
        "zero",
        "circle",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/dev/fd/0",
        "/no/such/place",
    ] {
        assert!(matches!(field.read(path), Err(PathError::Outside(_))), "{path}");
    }
}

#[test]
fn a_special_file_is_refused_without_blocking() {
    let field = Field::new();
    assert!(matches!(field.read("fifo"), Err(PathError::Special(_))));
    assert!(matches!(field.write("fifo"), Err(PathError::Special(_))));
    assert!(matches!(field.read("a"), Err(PathError::IsDirectory(_))));
    assert!(matches!(field.write("a"), Err(PathError::IsDirectory(_))));
    assert!(matches!(field.write("new/"), Err(PathError::IsDirectory(_))));
    assert!(matches!(field.read("file/x"), Err(PathError::ThroughFile(_))));
    assert!(matches!(field.read("none"), Err(PathError::NotFound(_))));
    let socket = std::os::unix::net::UnixListener::bind(field.inside().join("socket")).unwrap();
    assert!(matches!(field.read("socket"), Err(PathError::Special(_))));
    drop(socket);
}

#[test]
fn the_kernels_own_files_are_refused_even_in_a_workspace_that_holds_them() {
    let workspace = Workspace::new(Path::new("/"), &[]).unwrap();
    for path in
        ["proc/self/environ", "/proc/self/status", "proc/1/environ", "sys/kernel/uevent_seqnum", "dev/null"]
    {
        assert!(workspace.open_file(path).is_err(), "{path}");
        assert!(workspace.target(path).is_err(), "{path}");
    }
}

#[test]
fn writing_outside_the_workspace_is_refused() {
    let field = Field::new();
    let before = field.state_outside();
    for path in [
        "../outside/secret",
        "../outside/new",
        "../new",
        "secret",
        "dangling",
        "out/new",
        "out/d/new",
        "out/deep/er/new",
        "abs_out/new",
        "magic/new",
        "a/../../new",
        "a/none/../../../../new",
        "circle",
        "circle/new",
        "..",
        "a/..",
        ".",
        "",
    ] {
        assert!(field.write(path).is_err(), "{path}");
    }
    assert_eq!(field.state_outside(), before);
}

#[test]
fn a_link_that_stays_inside_is_written_through_and_stays_a_link() {
    let field = Field::new();
    symlink("a/b/file", field.inside().join("link")).unwrap();
    assert_eq!(field.write("link").unwrap(), field.inside().join("a/b/file"));
    assert_eq!(field.write("in/other").unwrap(), field.inside().join("a/b/other"));
    assert!(field.inside().join("link").is_symlink());
    assert_eq!(fs::read_to_string(field.inside().join("a/b/file")).unwrap(), "written");
}

#[test]
fn missing_directories_are_made() {
    let field = Field::new();
    assert_eq!(field.write("x/y/z").unwrap(), field.inside().join("x/y/z"));
    assert_eq!(field.read("x/y/z").unwrap(), "written");
}

#[test]
fn another_name_of_a_file_keeps_what_it_had() {
    let field = Field::new();
    fs::hard_link(field.outside().join("secret"), field.inside().join("hard")).unwrap();
    field.write("hard").unwrap();
    assert_eq!(field.read("hard").unwrap(), "written");
    assert_eq!(fs::read_to_string(field.outside().join("secret")).unwrap(), SECRET);
}

#[test]
fn a_replaced_file_keeps_its_rights_and_leaves_no_other_file_behind() {
    let field = Field::new();
    let path = field.inside().join("file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let names = |field: &Field| fs::read_dir(field.inside()).unwrap().count();
    let before = names(&field);
    field.write("file").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
    assert_eq!(names(&field), before);
}

#[test]
fn a_directory_swapped_for_a_link_after_the_look_is_not_followed() {
    let field = Field::new();
    let before = field.state_outside();
    let existing = field.workspace().target("a/b/file").unwrap();
    let new = field.workspace().target("a/b/new").unwrap();
    let deeper = field.workspace().target("a/none/new").unwrap();
    fs::rename(field.inside().join("a"), field.inside().join("moved")).unwrap();
    symlink(field.outside(), field.inside().join("a")).unwrap();
    symlink(field.outside(), field.inside().join("moved/none")).unwrap();
    existing.write(b"x").unwrap();
    new.write(b"x").unwrap();
    assert!(matches!(deeper.write(b"x"), Err(PathError::Outside(_))));
    assert_eq!(field.state_outside(), before);
    assert_eq!(fs::read(field.inside().join("moved/b/file")).unwrap(), b"x");
}

#[test]
fn a_file_that_somebody_else_made_or_replaced_meanwhile_is_theirs() {
    let field = Field::new();
    let new = field.workspace().target("new").unwrap();
    fs::write(field.inside().join("new"), "theirs").unwrap();
    assert!(matches!(new.write(b"ours"), Err(PathError::Moved(_))));
    assert_eq!(field.read("new").unwrap(), "theirs");

    let existing = field.workspace().target("file").unwrap();
    fs::write(field.inside().join("other"), "theirs").unwrap();
    fs::rename(field.inside().join("other"), field.inside().join("file")).unwrap();
    assert!(matches!(existing.write(b"ours"), Err(PathError::Moved(_))));
    assert_eq!(field.read("file").unwrap(), "theirs");
}

#[test]
fn an_extra_root_is_inside_and_a_link_to_it_too() {
    let field = Field::new();
    let workspace = Workspace::new(&field.inside(), &[field.outside()]).unwrap();
    let secret = field.outside().join("secret").display().to_string();
    for path in [secret.as_str(), "out/secret", "abs_out/d/secret", "../outside/secret"] {
        assert!(workspace.open_file(path).is_ok(), "{path}");
        assert!(workspace.target(path).is_ok(), "{path}");
    }
    assert!(workspace.open_file("../other").is_err());
}

fn spelling() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => Just(".."), 1 => Just("."), 1 => Just(""), 2 => Just("a"), 2 => Just("b"), 2 => Just("in"),
        2 => Just("abs_in"), 2 => Just("out"), 2 => Just("abs_out"), 1 => Just("magic"), 2 => Just("secret"),
        1 => Just("dangling"), 1 => Just("new"), 2 => Just("inside"), 3 => Just("outside"), 1 => Just("d"),
        1 => Just("fifo"), 1 => Just("circle"), 1 => Just("file"), 1 => Just("\u{2025}"),
    ];
    let start = prop_oneof![5 => Just(""), 2 => Just("INSIDE/"), 1 => Just("OUTSIDE/"), 1 => Just("/"),
        1 => Just("/proc/self/cwd/"), 1 => Just("//")];
    (start, prop::collection::vec(part, 0..8))
        .prop_map(|(start, parts)| format!("{start}{}", parts.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn no_spelling_of_a_path_leaves_the_workspace(spellings in prop::collection::vec(spelling(), 1..6)) {
        let field = Field::new();
        let before = field.state_outside();
        for spelling in spellings {
            let path = spelling
                .replace("INSIDE", field.inside().to_str().unwrap())
                .replace("OUTSIDE", field.outside().to_str().unwrap());
            if let Ok(text) = field.read(&path) {
                prop_assert_ne!(text, SECRET, "{}", path);
            }
            if let Ok(opened) = field.workspace().open_directory(&path) {
                prop_assert!(opened.path.starts_with(field.inside()), "{}", path);
            }
            if let Ok(written) = field.write(&path) {
                prop_assert!(written.starts_with(field.inside()), "{}", path);
            }
        }
        prop_assert_eq!(field.state_outside(), before);
    }
}
