//! Checks before parsing: refuses bytes that bash and the grammar may read differently.

use qwen_events::is_hidden;

/// The longest script that is read.
const MAX_LENGTH: usize = 64 * 1024;

/// How much of it may be other than the text of quoted here-documents. The grammar's time grows with the
/// square of what it does not understand.
const MAX_STRUCTURE: usize = 16 * 1024;

/// How many operators may be in that.
const MAX_OPERATORS: usize = 1000;

/// The most here-documents in a line.
const MAX_HEREDOCS: usize = 16;

/// The longest word that ends a here-document.
const MAX_DELIMITER: usize = 64;

/// Refuses scripts with misleading characters.
pub(super) fn screen(script: &str) -> Result<(), &'static str> {
    if script.contains('\r') {
        return Err("it has a carriage return in it");
    }
    if script.contains('\0') {
        return Err("it has a NUL in it");
    }
    if script.chars().any(is_hidden) {
        return Err("it has characters in it that cannot be seen");
    }
    Ok(())
}

/// Refuses scripts that the grammar's scanner was not written for, or takes too long for. Those are not
/// parsed.
pub(super) fn check_parsable(script: &str) -> Result<(), &'static str> {
    const LONG: &str = "it is too long to be read";
    if script.len() > MAX_LENGTH {
        return Err(LONG);
    }
    let structure = without_quoted_heredocs(script);
    let operators = structure.bytes().filter(|byte| b"|&;()<>`$[]{}\n".contains(byte)).count();
    if structure.len() > MAX_STRUCTURE || operators > MAX_OPERATORS {
        return Err(LONG);
    }
    if script.contains('\0') || exceeds_heredoc_limits(&structure) {
        return Err("its here-documents are not understood");
    }
    Ok(())
}

/// The script without the text of quoted here-documents, as far as that is easily found.
fn without_quoted_heredocs(script: &str) -> String {
    let mut structure = String::new();
    let mut lines = script.split('\n');
    while let Some(line) = lines.next() {
        structure.push_str(line);
        structure.push('\n');
        if let Some(delimiter) = quoted_delimiter(line) {
            let mut body = lines.clone();
            if body.any(|line| line.trim_start_matches('\t') == delimiter) {
                lines = body;
            }
        }
    }
    structure
}

/// The word that ends the quoted here-document which a line begins, if it does.
fn quoted_delimiter(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("<<")?;
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start_matches(' ');
    let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    rest[1..].split_once(quote).map(|(delimiter, _)| delimiter)
}

/// The script with a full stop for every byte that is not ASCII. Both are letters of a word to bash, and the
/// grammar's scanner must not see others: it looks them up in tables that end before them.
pub(super) fn ascii_substitute(script: &str) -> Vec<u8> {
    script.bytes().map(|byte| if byte.is_ascii() { byte } else { b'.' }).collect()
}

/// True if there are more here-documents than the scanner can keep, or ones that end with a longer word.
fn exceeds_heredoc_limits(script: &str) -> bool {
    let mut heredocs = 0;
    let mut rest = script;
    while let Some(at) = rest.find("<<") {
        rest = rest[at..].trim_start_matches('<');
        rest = rest.strip_prefix('-').unwrap_or(rest).trim_start_matches([' ', '\t']);
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        heredocs += 1;
        if heredocs > MAX_HEREDOCS || word > MAX_DELIMITER {
            return true;
        }
    }
    false
}
