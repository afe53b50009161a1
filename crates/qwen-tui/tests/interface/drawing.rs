//! Draws a terminal's screen as SVG. The tests of the binary include this file too, to draw recordings.

use std::fmt::Write;

const CELL: (f32, f32) = (8.4, 18.0);
const MARGIN: f32 = 12.0;

/// The terminal's colours: a background, the text, and the six that the interface uses.
#[derive(Clone, Copy)]
pub struct Palette {
    pub name: &'static str,
    background: &'static str,
    text: &'static str,
    colors: [&'static str; 6],
}

impl Palette {
    pub const DARK: Self = Self {
        name: "dark",
        background: "#1d1f21",
        text: "#d8dee9",
        colors: ["#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2"],
    };
    pub const LIGHT: Self = Self {
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

/// The screen as SVG, down to the last row with text.
pub fn svg(screen: &vt100::Screen, palette: Palette) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let last = (0..rows).rev().find(|row| {
        (0..columns).any(|column| screen.cell(*row, column).is_some_and(vt100::Cell::has_contents))
    });
    let rows = last.unwrap_or_default() + 1;
    format!("{}{}</svg>\n", opening(rows, columns, palette), cells(screen, rows, palette))
}

/// The opening tag of a picture of this many rows and columns, and its background.
pub fn opening(rows: u16, columns: u16, palette: Palette) -> String {
    let width = f32::from(columns) * CELL.0 + 2.0 * MARGIN;
    let height = f32::from(rows) * CELL.1 + 2.0 * MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{}\"/>\n",
        palette.background
    )
}

/// The first rows of the screen and its cursor: one text element for each run of cells that look the same.
pub fn cells(screen: &vt100::Screen, rows: u16, palette: Palette) -> String {
    let columns = screen.size().1.get();
    let mut out = String::new();
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
    out
}
