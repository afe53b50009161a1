//! Characters that are invisible or displayed as something else.

/// True if a character is invisible, changes the order in which text is shown, or controls a terminal.
///
/// Newline and tab are excluded: the code that displays the text decides about them.
pub fn is_hidden(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control() && character != '\n' && character != '\t';
    }
    if character.is_control() || character.is_whitespace() {
        return true;
    }
    matches!(
        u32::from(character),
        0x00AD | 0x034F | 0x061C | 0x06DD | 0x070F | 0x08E2 | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F
            | 0x0600..=0x0605
            | 0x0890..=0x0891
            | 0x200B..=0x200F
            | 0x202A..=0x202E
            | 0x2060..=0x206F
            | 0x2800
            | 0x3164
            | 0xFE00..=0xFE0E
            | 0xFEFF
            | 0xFFA0
            | 0xFFF0..=0xFFFB
            | 0x110BD
            | 0x110CD
            | 0x13430..=0x13455
            | 0x1BCA0..=0x1BCA3
            | 0x1D173..=0x1D17A
            | 0xE000..=0xF8FF
            | 0xE0000..=0xE0FFF
            | 0xF0000..=0x10_FFFF
    )
}
