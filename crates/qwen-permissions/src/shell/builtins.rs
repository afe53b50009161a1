//! What the shell itself does with a word: keywords, and builtins whose effect cannot be seen from their
//! words.

use super::{Word, basename};

/// True if an unquoted word at the beginning of a command is a keyword of bash.
pub(super) fn is_keyword(raw: &str) -> bool {
    matches!(
        raw,
        "!" | "[["
            | "]]"
            | "{"
            | "}"
            | "case"
            | "coproc"
            | "do"
            | "done"
            | "elif"
            | "else"
            | "esac"
            | "fi"
            | "for"
            | "function"
            | "if"
            | "select"
            | "then"
            | "until"
            | "while"
    )
}

/// Returns why the effect of a command cannot be seen from its words, if so.
pub(super) fn refusal(words: &[Word]) -> Option<String> {
    let name = words.first()?.literal()?;
    let arguments = &words[1..];
    let has = |wanted: &[&str]| {
        arguments
            .iter()
            .any(|word| word.literal().is_some_and(|word| wanted.iter().any(|start| word.starts_with(start))))
    };
    let unreadable = match name {
        "." | "source" => !activates_environment(arguments),
        "alias" | "bind" | "caller" | "compgen" | "complete" | "compopt" | "coproc" | "dirs" | "disown"
        | "enable" | "eval" | "fc" | "function" | "getopts" | "hash" | "history" | "let" | "logout"
        | "mapfile" | "popd" | "pushd" | "readarray" | "select" | "shopt" | "suspend" | "unalias"
        | "unset" => true,
        "declare" | "typeset" | "local" | "readonly" => arguments.iter().any(|word| word.literal().is_none()),
        "trap" => arguments.iter().any(|word| word.literal().is_none()),
        "read" => !arguments.iter().all(|word| {
            word.literal().is_some_and(|word| matches!(word, "-r" | "-d" | "") || is_plain_variable(word))
        }),
        "set" => !arguments.iter().all(|word| {
            word.literal().is_some_and(|word| {
                matches!(word, "pipefail" | "errexit" | "nounset" | "xtrace")
                    || word
                        .strip_prefix(['-', '+'])
                        .is_some_and(|letters| letters.bytes().all(|letter| b"euxo".contains(&letter)))
            })
        }),
        "printf" => has(&["-v"]) || arguments.first().is_some_and(Word::may_hide_an_option),
        "test" | "[" => has(&["-v", "-R"]),
        "wait" => {
            has(&["-p"]) || arguments.iter().any(|word| word.may_hide_an_option() && !is_shell_number(word))
        }
        "export" => arguments.iter().any(|word| word.literal().is_none()),
        _ => false,
    };
    unreadable.then(|| format!("what {} does cannot be seen from its words", basename(name)))
}

/// True if a shell runs what is in a variable, or in the file that it names.
pub(super) fn is_shell_code(name: &str) -> bool {
    matches!(
        name,
        "BASH_ENV" | "ENV" | "PS0" | "PS1" | "PS2" | "PS4" | "PROMPT_COMMAND" | "SHELLOPTS" | "BASHOPTS"
    ) || name.starts_with("BASH_FUNC_")
}

/// True if a word is a number that the shell counts: `$!`.
fn is_shell_number(word: &Word) -> bool {
    matches!(word, Word::Dynamic(dynamic) if dynamic.without_variables && !dynamic.made && dynamic.prefix.is_empty())
}

/// True if a function of this name changes what the rest of a line means.
pub(super) fn is_taken(name: &str) -> bool {
    is_keyword(name) || COMMANDS_OF_BASH.split(' ').any(|command| command == name)
}

/// Builtins of bash, which take precedence over programs of the same name.
pub(super) const COMMANDS_OF_BASH: &str = ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue \
declare dirs disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd \
printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask \
unalias unset wait";

/// True if a script that the shell itself runs is the one that activates a Python environment. Its text is as
/// unknown as that of any program that a line names, and it does nothing to the rest of the line.
fn activates_environment(arguments: &[Word]) -> bool {
    matches!(arguments, [script] if script.literal().is_some_and(|path| path.ends_with("/bin/activate")))
}

/// True if a variable is one that scripts use for themselves, and no program looks at.
pub(crate) fn is_plain_variable(name: &str) -> bool {
    let single = name.len() == 1 && name.bytes().all(|byte| byte.is_ascii_lowercase());
    single
        || matches!(
            name,
            "arg"
                | "branch"
                | "commit"
                | "crate"
                | "dir"
                | "entry"
                | "file"
                | "filename"
                | "fn"
                | "idx"
                | "item"
                | "line"
                | "module"
                | "name"
                | "num"
                | "package"
                | "pkg"
                | "rev"
                | "sha"
                | "tag"
                | "word"
        )
}
