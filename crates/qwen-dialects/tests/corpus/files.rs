//! The corpus on disk: where its files are, how they are read, written and compared.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::streams::Variant;
use crate::traces;

/// Larger streams are kept compressed.
const COMPRESS_FROM: usize = 128 * 1024;

/// All files of the corpus that are generated, by their path inside it, and what each holds once
/// decompressed.
pub struct Corpus {
    files: BTreeMap<String, &'static [u8]>,
}

/// A stream of the corpus.
pub struct Stream {
    pub trace: &'static str,
    pub path: String,
    pub variant: Variant,
    pub bytes: Vec<u8>,
}

/// Each trace in every variant.
pub fn streams() -> &'static [Stream] {
    static STREAMS: LazyLock<Vec<Stream>> = LazyLock::new(|| {
        let mut streams = Vec::new();
        for (trace, told) in traces::all() {
            for variant in Variant::all() {
                let bytes = variant.encode(&told.events);
                let gz = if bytes.len() >= COMPRESS_FROM { ".gz" } else { "" };
                let path = format!("{trace}/{}{gz}", variant.file_name());
                streams.push(Stream { trace, path, variant, bytes });
            }
        }
        streams
    });
    &STREAMS
}

impl Corpus {
    pub fn build() -> Self {
        let streams = streams();
        let mut manifest = Vec::new();
        for (trace, told) in traces::all() {
            let turns: Vec<Value> = told
                .turns
                .iter()
                .map(|turn| {
                    json!({"prompt_id": turn.prompt_id, "status": turn.status.name(), "reply": turn.reply})
                })
                .collect();
            let last = told.turns.last().unwrap();
            let files: Vec<Value> = streams
                .iter()
                .filter(|stream| stream.trace == trace)
                .map(|stream| {
                    json!({
                        "path": stream.path,
                        "dialect": stream.variant.dialect.name(),
                        "format": stream.variant.format.name(),
                        "partial_messages": stream.variant.partial,
                        "lines": lines(&stream.bytes),
                    })
                })
                .collect();
            manifest.push(json!({
                "name": trace,
                "status": last.status.name(),
                "final_text": last.reply,
                "turns": turns,
                "files": files,
            }));
        }
        let mut text = serde_json::to_vec_pretty(&json!({"traces": manifest})).unwrap();
        text.push(b'\n');
        let mut files: BTreeMap<_, _> =
            streams.iter().map(|stream| (stream.path.clone(), &stream.bytes[..])).collect();
        files.insert("manifest.json".to_owned(), text.leak());
        Self { files }
    }

    /// Makes the folder hold exactly these files, leaving alone those that hold the same already.
    pub fn write(&self) {
        for path in on_disk().into_iter().filter(|path| !self.files.contains_key(path)) {
            std::fs::remove_file(root().join(path)).unwrap();
        }
        for (path, bytes) in &self.files {
            let file = root().join(path);
            if file.exists() && read(path) == *bytes {
                continue;
            }
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            if is_compressed(&file) {
                let mut gz = GzEncoder::new(std::fs::File::create(file).unwrap(), Compression::best());
                gz.write_all(bytes).unwrap();
                gz.finish().unwrap();
            } else {
                std::fs::write(file, bytes).unwrap();
            }
        }
    }

    /// Fails with the first line that differs.
    pub fn compare(&self) {
        let expected: Vec<&String> = self.files.keys().collect();
        assert_eq!(on_disk().iter().collect::<Vec<_>>(), expected, "the files of corpus/; see `make bless`");
        for (path, bytes) in &self.files {
            let kept = read(path);
            for (number, (new, old)) in split(bytes).zip(split(&kept)).enumerate() {
                assert!(
                    new == old,
                    "corpus/{path}, line {}, is no longer what the encoder writes; see `make bless`\n  kept:    {}\n  written: {}",
                    number + 1,
                    shown(old),
                    shown(new),
                );
            }
            assert_eq!(lines(bytes), lines(&kept), "lines in corpus/{path}; see `make bless`");
        }
    }
}

/// Where the corpus is.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// What a file of the corpus holds, decompressed.
pub fn read(path: &str) -> Vec<u8> {
    let file = root().join(path);
    let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("corpus/{path}: {error}"));
    if !is_compressed(&file) {
        return bytes;
    }
    let mut whole = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut whole).unwrap();
    whole
}

/// The generated files that are there: the manifest, and the streams in the folders of the traces.
fn on_disk() -> Vec<String> {
    let mut found = Vec::new();
    for folder in std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap()) {
        let name = folder.file_name().into_string().unwrap();
        match name.as_str() {
            "README.md" | "spec-examples" => {}
            "manifest.json" => found.push(name),
            _ => found.extend(
                std::fs::read_dir(folder.path())
                    .unwrap()
                    .map(|entry| format!("{name}/{}", entry.unwrap().file_name().into_string().unwrap())),
            ),
        }
    }
    found.sort();
    found
}

fn is_compressed(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "gz")
}

fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n')
}

fn lines(bytes: &[u8]) -> usize {
    split(bytes).count()
}

fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().take(2000).collect()
}
