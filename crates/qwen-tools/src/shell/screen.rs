//! What is refused before a line is parsed: bytes that bash and the grammar may read differently.

use super::is_hidden;

/// The longest line that is read.
pub(super) const MAX_LENGTH: usize = 64 * 1024;

/// The most here-documents in a line.
const MAX_HEREDOCS: usize = 16;

/// The longest word that ends a here-document.
const MAX_DELIMITER: usize = 64;

/// Refuses lines that may not be what they look like.
pub(super) fn screen(script: &str) -> Result<(), &'static str> {
    if script.len() > MAX_LENGTH {
        return Err("it is too long to be read");
    }
    if script.contains('\r') {
        return Err("it has a carriage return in it");
    }
    if script.contains('\0') {
        return Err("it has a NUL in it");
    }
    if script.chars().any(is_hidden) {
        return Err("it has characters in it that cannot be seen");
    }
    if stresses_the_grammar(script) {
        return Err("its here-documents are not understood");
    }
    Ok(())
}

/// The script with a full stop for every byte that is not ASCII. Both are letters of a word to bash, and the grammar's
/// scanner must not see others: it looks them up in tables that end before them.
pub(super) fn ascii_twin(script: &str) -> Vec<u8> {
    script.bytes().map(|byte| if byte.is_ascii() { byte } else { b'.' }).collect()
}

/// Whether here-documents are of a shape that the grammar's scanner was not written for. Such a line is not parsed.
pub(super) fn stresses_the_grammar(script: &str) -> bool {
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
    script.contains('\0')
}
