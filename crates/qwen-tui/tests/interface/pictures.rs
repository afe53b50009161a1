//! Pictures of the screen for the documentation: drawn from the cells of an emulated terminal, committed, and
//! checked for being up to date. `make pictures` draws them anew.

use std::path::Path;

use crate::drawing::{Palette, svg};
use crate::harness::Stage;
use crate::scenes::scene;

const COLUMNS: u16 = 80;

/// The scenes that are drawn, and with which palette.
const PICTURES: &[(&str, Palette)] = &[
    ("start", Palette::DARK),
    ("streaming", Palette::DARK),
    ("question-rule", Palette::DARK),
    ("diff", Palette::DARK),
    ("transcript", Palette::DARK),
    ("thoughts", Palette::DARK),
    ("answer", Palette::LIGHT),
];

#[test]
fn pictures_show_the_screen_as_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    let is_drawing = std::env::var_os("QWEN_BLESS").is_some();
    for (name, palette) in PICTURES {
        let mut stage = Stage::new(COLUMNS, 24);
        scene(name)(&mut stage);
        let picture = svg(stage.parser(), *palette);
        let path = folder.join(format!("{name}-{}.svg", palette.name));
        if is_drawing {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &picture).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == picture, "{} is out of date: run `make pictures` and look at it", path.display());
    }
}
