//! Programs that take a script as an argument, and builtins that look like programs.

use super::grammar::{Grammar, Style};
use super::{Arguments, Refusal, Use};
use crate::shell::Word;
use crate::shell::options::is_listed;

/// `printf`: a format and its values.
pub(super) fn printf(arguments: Arguments<'_>) -> Result<Use, Refusal> {
    match arguments.words.get(1) {
        Some(format) if format.known_prefix().starts_with('-') && format.literal() != Some("--") => {
            Err("printf with an option may set a variable".to_owned())
        }
        _ => Ok(Use { only_reads: true, ..Use::default() }),
    }
}

/// `test` and `[`: some operators evaluate their operands, so the operators must be literal.
pub(super) fn test(arguments: Arguments<'_>) -> Result<Use, Refusal> {
    let paths = paths_of_test(&arguments.words[1..]);
    let used = Use { only_reads: true, paths, ..Use::default() };
    if arguments.name() == "[[" {
        // Evaluating operators were already rejected when the line was parsed.
        return Ok(used);
    }
    let mut words = &arguments.words[1..];
    if arguments.name() == "[" {
        words = words.strip_suffix(&[Word::Literal("]".to_owned())]).unwrap_or(words);
    }
    while let [Word::Literal(not), rest @ ..] = words {
        if not != "!" || rest.is_empty() {
            break;
        }
        words = rest;
    }
    let whole = |word: &Word| !matches!(word, Word::Dynamic(dynamic) if dynamic.splits);
    let understood = match words {
        [] => true,
        [operand] => whole(operand),
        [Word::Literal(operator), operand] => {
            let letter = operator.strip_prefix('-').filter(|letter| letter.len() == 1);
            whole(operand) && letter.is_some_and(|letter| "abcdefghknoprstuwxzGLNOS".contains(letter))
        }
        [left, Word::Literal(operator), right] => {
            let compares = "= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef";
            whole(left) && whole(right) && is_listed(compares, operator)
        }
        // Longer ones are read from operator to operator, so each word must be known.
        words => words.iter().all(|word| word.literal().is_some_and(|text| !matches!(text, "-v" | "-R"))),
    };
    if understood { Ok(used) } else { Err("a test that is not understood".to_owned()) }
}

/// The words of a test that name files.
fn paths_of_test(words: &[Word]) -> Vec<Word> {
    let mut paths = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(operator) = word.literal() else { continue };
        let behind = words.get(at + 1).filter(|behind| !matches!(behind.literal(), Some("]" | "]]")));
        if is_listed("-nt -ot -ef", operator) {
            paths.extend(at.checked_sub(1).and_then(|before| words.get(before)).cloned());
            paths.extend(behind.cloned());
        } else if is_listed("-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S", operator) {
            // Between two operands `-a` means and.
            let before = at.checked_sub(1).and_then(|before| words.get(before)).map(Word::known_prefix);
            let is_and = operator == "-a" && !matches!(before, None | Some("!" | "(" | "&&" | "||"));
            paths.extend(behind.filter(|_| !is_and).cloned());
        }
    }
    paths
}

/// `cd`: to one literal directory.
pub(super) fn cd(arguments: Arguments<'_>) -> Result<Use, Refusal> {
    match &arguments.words[1..] {
        [directory] if directory.literal().is_some_and(|text| !text.is_empty() && !text.starts_with('-')) => {
            Ok(Use { only_reads: true, paths: vec![directory.clone()], ..Use::default() })
        }
        _ => Err("cd leads somewhere that is not spelt out".to_owned()),
    }
}

/// `set`: options of the shell, which were looked at when the line was read. Alone it would print every
/// variable.
pub(super) fn set(arguments: Arguments<'_>) -> Result<Use, Refusal> {
    match arguments.words.len() {
        1 => Err("set prints every variable".to_owned()),
        _ => Ok(Use { only_reads: true, ..Use::default() }),
    }
}

pub(super) const JQ: Grammar = Grammar {
    style: Style::WholeNames,
    options: "C,color-output L=* M,monochrome-output R,raw-input S,sort-keys V a,ascii-output arg== argjson== args \
     build-configuration c,compact-output e,exit-status f,from-file* h indent= j,join-output jsonargs n,null-input r,raw-output \
     raw-output0 rawfile==* s,slurp seq slurpfile==* stream stream-errors tab unbuffered",
};

/// `jq`: a filter that does not look beyond its input, then files.
pub(super) fn jq(arguments: Arguments<'_>) -> Result<Use, Refusal> {
    let read = JQ.read(&arguments, 1)?;
    let filter = read.operands.first().and_then(|index| arguments.words.get(*index));
    match filter.map(Word::literal) {
        Some(Some(filter)) if !reads_beyond_input(filter) => {}
        None => {}
        _ => return Err("the filter of jq may look beyond its input".to_owned()),
    }
    let paths = arguments.words_at(read.operands.get(1..).unwrap_or(&[]));
    Ok(Use { only_reads: true, paths, ..Use::default() })
}

/// True if a filter of jq uses a name by which it gets at more than its input. Behind one dot a name is a
/// field.
fn reads_beyond_input(filter: &str) -> bool {
    const NAMES: &str =
        "env ENV import include input_filename modulemeta debug halt halt_error get_search_list";
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = filter.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_part(bytes[at]) {
            at += 1;
            continue;
        }
        let end =
            bytes[at..].iter().position(|byte| !is_part(*byte)).map_or(bytes.len(), |length| at + length);
        let is_field = at >= 1 && bytes[at - 1] == b'.' && (at < 2 || bytes[at - 2] != b'.');
        if !is_field && is_listed(NAMES, &filter[at..end]) {
            return true;
        }
        at = end;
    }
    false
}

pub(super) const SED: Grammar = Grammar {
    style: Style::Getopt,
    options: "E,r,regexp-extended b,binary debug e,expression= f,file=! follow-symlinks i,in-place?! l,line-length= n,quiet,silent \
     posix s,separate sandbox u,unbuffered z,null-data",
};

/// `sed`: a script of commands that print, delete and substitute, then files.
pub(super) fn sed(arguments: Arguments<'_>) -> Result<Use, Refusal> {
    let read = SED.read(&arguments, 1)?;
    let mut scripts: Vec<Word> = read
        .given
        .iter()
        .filter(|given| matches!(given.name.as_str(), "-e" | "--expression"))
        .filter_map(|given| given.value.clone())
        .collect();
    let mut operands = read.operands.as_slice();
    if scripts.is_empty() {
        let Some((first, rest)) = operands.split_first() else { return Err("sed has no script".to_owned()) };
        // A script that the rule lists literally is permitted.
        if !arguments.is_named(*first) {
            scripts.extend(arguments.words.get(*first).cloned());
        }
        operands = rest;
    }
    let harmless = scripts.iter().all(|script| script.literal().is_some_and(sed_only_edits_its_output));
    if !harmless {
        return Err("the script of sed may write or run something".to_owned());
    }
    Ok(Use { only_reads: true, paths: arguments.words_at(operands), ..Use::default() })
}

/// True if a script of sed has nothing in it but addresses and the commands `p`, `d`, `q`, `=` and `s`.
fn sed_only_edits_its_output(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';']);
        if rest.is_empty() {
            return true;
        }
        let Some(after) = sed_address(rest) else { return false };
        rest = after.trim_start_matches([' ', '\t']);
        if let Some(second) = rest.strip_prefix(',') {
            let second = second.trim_start_matches([' ', '\t']);
            let second = second.strip_prefix(['+', '~']).unwrap_or(second);
            let Some(after) = sed_address(second) else { return false };
            rest = after;
        }
        rest = rest.trim_start_matches([' ', '\t', '!']);
        let mut characters = rest.chars();
        match characters.next() {
            Some('p' | 'd' | 'q' | '=' | 'D' | 'P' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x') => {
                rest = characters.as_str();
            }
            Some('s') => match sed_substitution(characters.as_str()) {
                Some(after) => rest = after,
                None => return false,
            },
            _ => return false,
        }
        rest = rest.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with([';', '\n']) {
            return false;
        }
    }
}

/// Steps over an address, if there is one; none where it is not understood.
fn sed_address(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('$') {
        return Some(rest);
    }
    if let Some(pattern) = text.strip_prefix('/') {
        return until_delimiter(pattern, '/');
    }
    let digits = text.trim_start_matches(|character: char| character.is_ascii_digit());
    Some(
        digits
            .strip_prefix('~')
            .map_or(digits, |step| step.trim_start_matches(|character: char| character.is_ascii_digit())),
    )
}

/// Steps over what follows the `s` of a substitution; none where its flags do more than substitute.
fn sed_substitution(text: &str) -> Option<&str> {
    let delimiter =
        text.chars().next().filter(|character| character.is_ascii_punctuation() && *character != '\\')?;
    let pattern = &text[delimiter.len_utf8()..];
    let replacement = until_delimiter(pattern, delimiter)?;
    let flags = until_delimiter(replacement, delimiter)?;
    Some(flags.trim_start_matches(|character: char| {
        matches!(character, 'g' | 'p' | 'i' | 'I') || character.is_ascii_digit()
    }))
}

/// Returns the text after the next unquoted delimiter.
fn until_delimiter(text: &str, delimiter: char) -> Option<&str> {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\n' {
            return None;
        }
        if character == '\\' {
            characters.next()?;
        } else if character == delimiter {
            return Some(characters.as_str());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::sed_only_edits_its_output;

    #[test]
    fn a_sed_script_is_known_by_its_commands() {
        for script in [
            "p",
            "10,20p",
            "$p",
            "/a/,/b/p",
            "1d;2d",
            "s/a/b/g",
            "s|/x|/y|gI",
            "/x/!d",
            "s/a\\/b/c/2p",
            "1~2p",
            "5q",
            "$!d",
            "/a/,+3p",
        ] {
            assert!(sed_only_edits_its_output(script), "{script}");
        }
        for script in [
            "w out",
            "1w out",
            "s/a/b/w out",
            "s/a/b/e",
            "s/a/b/ge",
            "e touch X",
            "1e",
            "r /etc/passwd",
            "R f",
            "W f",
            "1,2w f",
            "p;w out",
            "p\nw out",
            "s/a/b/;e",
            "{p;w x\n}",
            "i\\\ntext",
            "a text",
            "y/a/b/",
            ":a",
            "b",
            "s/a/b",
            "s\na\nb\n",
            "\\,x,w out",
            "/a/e id",
            "s/x/y/gw out",
            "0,/x/{e id\n}",
            "M",
            "s/a/b/m;e",
            "1 e id",
            "F",
        ] {
            assert!(!sed_only_edits_its_output(script), "{script}");
        }
    }
}
