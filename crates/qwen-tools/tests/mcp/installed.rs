//! Official servers, installed once under `target/` by whoever runs the tests first.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

const PYTHON_PACKAGE: &str = "mcp==2.3.0";
const NPM_PACKAGE: &str = "@modelcontextprotocol/server-everything@2026.8.31";

/// The script that uses the Python package.
pub const OFFICIAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/servers/official.py");

/// A Python that has the official package.
pub fn python() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let place = installed("python", PYTHON_PACKAGE, |place| {
            run(Command::new("python3").args(["-m", "venv"]).arg(place));
            run(Command::new(place.join("bin/pip")).args(["install", "--quiet", PYTHON_PACKAGE]));
        });
        place.join("bin/python")
    })
}

/// The reference server of the TypeScript package.
pub fn everything() -> Value {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    let place = INSTALLED.get_or_init(|| {
        installed("npm", NPM_PACKAGE, |place| {
            fs::create_dir_all(place).unwrap();
            let flags = ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
            run(Command::new("npm").args(flags).arg(place).arg(NPM_PACKAGE));
        })
    });
    let script = place.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    json!({"command": "node", "args": [script.to_str().unwrap(), "stdio"]})
}

/// A directory in which `install` has once been to its end for this very package.
fn installed(name: &str, package: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (place, done) = (tmp.join(format!("mcp-{name}")), tmp.join(format!("mcp-{name}.done")));
    let lock = File::create(tmp.join(format!("mcp-{name}.lock"))).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    if fs::read_to_string(&done).is_ok_and(|version| version == package) {
        return place;
    }
    if place.exists() {
        fs::remove_dir_all(&place).unwrap();
    }
    install(&place);
    fs::write(done, package).unwrap();
    place
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
}
