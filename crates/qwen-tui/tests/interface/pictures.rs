//! Pictures of the screen for the documentation: drawn from the cells of an emulated terminal, committed, and
//! checked for being up to date. `make pictures` draws them anew.

use std::fmt::Write;
use std::path::Path;

use crate::harness::Stage;
use crate::scenes::scene;

const COLUMNS: u16 = 80;
const CELL: (f32, f32) = (8.4, 18.0);
const MARGIN: f32 = 12.0;

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

/// The terminal's colours: a background, the text, and the six that the interface uses.
#[derive(Clone, Copy)]
struct Palette {
    name: &'static str,
    background: &'static str,
    text: &'static str,
    colors: [&'static str; 6],
}

impl Palette {
    const DARK: Self = Self {
        name: "dark",
        background: "#1d1f21",
        text: "#d8dee9",
        colors: ["#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2"],
    };
    const LIGHT: Self = Self {
        name: "light",
        background: "#fafafa",
        text: "#383a42",
        colors: ["#ca1243", "#3d8b37", "#986801", "#4078f2", "#a626a4", "#0184bc"],
    };

    fn color(self, color: vt100::Color) -> &'static str {
        match color {
            vt100::Color::Idx(index @ 1..=6) => self.colors[usize::from(index) - 1],
            vt100::Color::Default | vt100::Color::Idx(_) | vt100::Color::Rgb(..) => self.text,
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The screen as SVG: one text element for each run of cells that look the same.
fn svg(screen: &vt100::Screen, palette: Palette) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let last = (0..rows).rev().find(|row| {
        (0..columns).any(|column| screen.cell(*row, column).is_some_and(vt100::Cell::has_contents))
    });
    let rows = last.unwrap_or_default() + 1;
    let width = f32::from(columns) * CELL.0 + 2.0 * MARGIN;
    let height = f32::from(rows) * CELL.1 + 2.0 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{}\"/>\n",
        palette.background
    );
    for row in 0..rows {
        let mut column = 0;
        while column < columns {
            let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) else {
                column += 1;
                continue;
            };
            let look = |cell: &vt100::Cell| {
                (cell.fgcolor(), cell.bold(), cell.dim(), cell.italic(), cell.underline(), cell.inverse())
            };
            let (start, first) = (column, look(cell));
            let mut text = String::new();
            while let Some(cell) =
                screen.cell(row, column).filter(|cell| cell.has_contents() && look(cell) == first)
            {
                text.push_str(cell.contents());
                column += if cell.is_wide() { 2 } else { 1 };
            }
            let (color, bold, dim, italic, underline, inverse) = first;
            let (x, y) = (MARGIN + f32::from(start) * CELL.0, MARGIN + f32::from(row) * CELL.1);
            let mut fill = palette.color(color);
            if inverse {
                let run = f32::from(column - start) * CELL.0;
                let _ = writeln!(
                    out,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{run:.1}\" height=\"{:.1}\" fill=\"{fill}\"/>",
                    CELL.1
                );
                fill = palette.background;
            }
            let mut style = String::new();
            for (set, attribute) in [
                (bold, " font-weight=\"bold\""),
                (dim, " opacity=\"0.6\""),
                (italic, " font-style=\"italic\""),
                (underline, " text-decoration=\"underline\""),
            ] {
                if set {
                    style.push_str(attribute);
                }
            }
            let length = f32::from(column - start) * CELL.0;
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\" xml:space=\"preserve\" fill=\"{fill}\"{style}>{}</text>",
                y + 13.5,
                escaped(&text)
            );
        }
    }
    if !screen.hide_cursor() {
        let (row, column) = screen.cursor_position();
        let (x, y) = (MARGIN + f32::from(column) * CELL.0, MARGIN + f32::from(row) * CELL.1);
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"2\" height=\"{:.1}\" fill=\"{}\"/>",
            CELL.1, palette.text
        );
    }
    out.push_str("</svg>\n");
    out
}

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
