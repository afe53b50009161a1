/// Breaks a text between words into lines of at most `width` characters.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() + word.len() > width {
            lines.push(line);
            line = String::new();
        }
        line.push_str(word);
        line.push(' ');
    }
    lines
}
