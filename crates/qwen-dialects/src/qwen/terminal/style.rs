//! Maps SGR parameters to the theme's colours.

/// The attributes that the SGR sequences so far left on, as far as a theme shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::qwen) struct Style {
    colour: Option<&'static str>,
    dim: bool,
}

/// The eight colours of a terminal; black and white are shown as plain text.
const COLOURS: [Option<&str>; 8] = [
    None,
    Some("AccentRed"),
    Some("AccentGreen"),
    Some("AccentYellow"),
    Some("AccentBlue"),
    Some("AccentPurple"),
    Some("AccentCyan"),
    None,
];

impl Style {
    /// The theme's name for it; none is plain text.
    pub(in crate::qwen) fn theme_token(self) -> Option<&'static str> {
        self.colour.or(self.dim.then_some("Comment"))
    }

    /// Applies the parameters of one SGR sequence, the text between `[` and `m`.
    pub(in crate::qwen) fn apply(&mut self, parameters: &str) {
        // An empty or invalid parameter is a 0, as in terminals.
        let mut numbers = parameters.split([';', ':']).map(|text| text.parse::<u16>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                2 => self.dim = true,
                22 => self.dim = false,
                30..=37 => self.colour = COLOURS[usize::from(number - 30)],
                38 => self.colour = extended(&mut numbers),
                39 => self.colour = None,
                // The background is not shown, but its parameters must not be read as attributes.
                48 => drop(extended(&mut numbers)),
                90 => self.colour = Some("Gray"),
                91..=97 => self.colour = COLOURS[usize::from(number - 90)],
                _ => {}
            }
        }
    }
}

/// The colour of `38;5;n` or `38;2;r;g;b`.
fn extended(numbers: &mut impl Iterator<Item = u16>) -> Option<&'static str> {
    match numbers.next()? {
        5 => palette(numbers.next()?),
        2 => rgb(numbers.next()?, numbers.next()?, numbers.next()?),
        _ => None,
    }
}

/// The colour of the 256-colour palette: 16 named ones, a cube of 6×6×6, a ramp of greys.
fn palette(index: u16) -> Option<&'static str> {
    match index {
        8 => Some("Gray"),
        0..=15 => COLOURS[usize::from(index % 8)],
        16..=231 => {
            let level = |n: u16| if n == 0 { 0 } else { 55 + 40 * n };
            let cube = index - 16;
            rgb(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        _ => Some("Gray"),
    }
}

/// The theme's colour with the nearest hue; a colour with little saturation is grey, or plain if it is very
/// bright or dark.
fn rgb(red: u16, green: u16, blue: u16) -> Option<&'static str> {
    let (red, green, blue) = (i32::from(red), i32::from(green), i32::from(blue));
    let most = red.max(green).max(blue);
    let least = red.min(green).min(blue);
    let spread = most - least;
    if spread * 4 < most || most < 32 {
        return (64..=192).contains(&most).then_some("Gray");
    }
    // Sixths of the colour circle, in 60ths: red 0, yellow 60, green 120, cyan 180, blue 240, purple 300.
    let hue = if most == red {
        60 * (green - blue) / spread
    } else if most == green {
        120 + 60 * (blue - red) / spread
    } else {
        240 + 60 * (red - green) / spread
    };
    COLOURS[match hue.rem_euclid(360) {
        30..90 => 3,
        90..150 => 2,
        150..210 => 6,
        210..270 => 4,
        270..330 => 5,
        _ => 1,
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sgr_parameters_become_theme_colours() {
        for (parameters, token) in [
            ("32", Some("AccentGreen")),
            ("1;31", Some("AccentRed")),
            ("33", Some("AccentYellow")),
            ("94", Some("AccentBlue")),
            ("36", Some("AccentCyan")),
            ("35", Some("AccentPurple")),
            ("90", Some("Gray")),
            ("2", Some("Comment")),
            ("2;32", Some("AccentGreen")),
            ("", None),
            ("0", None),
            ("1", None),
            ("32;39", None),
            ("2;22", None),
            ("37", None),
            ("38;5;2", Some("AccentGreen")),
            ("38;5;196", Some("AccentRed")),
            ("38;5;244", Some("Gray")),
            ("38;2;0;0;255", Some("AccentBlue")),
            ("38:2:255:0:255", Some("AccentPurple")),
            ("38;2;255;255;255", None),
            ("48;5;1", None),
            ("48;2;31;32;33;36", Some("AccentCyan")),
            ("38", None),
            ("99999999;32", Some("AccentGreen")),
        ] {
            let mut style = Style::default();
            style.apply(parameters);
            assert_eq!(style.theme_token(), token, "{parameters}");
        }
    }
}
