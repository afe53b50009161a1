//! `make`: a rule for it permits the tasks of the project's own makefile, but no other text that make runs.

use super::grammar::{Grammar, Style};
use super::{Arguments, Refusal, Use};
use crate::shell::Word;
use crate::shell::options::is_listed;

const GRAMMAR: Grammar = Grammar {
    style: Style::Getopt,
    options: "B,always-make C,directory= E,eval=! I,include-dir=! L,check-symlink-times O,output-sync? \
     R,no-builtin-variables S,no-keep-going,stop W,what-if,new-file,assume-new= b d debug? e,environment-overrides* \
     f,file,makefile=! h i,ignore-errors j,jobs? jobserver-auth=! jobserver-fds=! jobserver-style= k,keep-going \
     l,load-average,max-load? m n,just-print,dry-run,recon no-print-directory no-silent o,old-file,assume-old= \
     p,print-data-base q,question r,no-builtin-rules s,silent,quiet shuffle? t,touch trace v w,print-directory \
     warn-undefined-variables",
};

/// Variables that name a program or options for make itself.
const PROGRAMS: &str = ".RECIPEPREFIX .SHELLFLAGS AR ARFLAGS AS CC CO CPP CXX FC GET GNUMAKEFLAGS LD LEX LINT M2C MAKE MAKEFILES \
 MAKEFLAGS MAKEINFO MFLAGS PC RM SHELL TANGLE TEX TEXI2DVI WEAVE YACC";

pub(super) fn examine(arguments: Arguments<'_>) -> Result<Use, Refusal> {
    let read = GRAMMAR.read(&arguments, 1)?;
    let leaves = |word: &Word| {
        word.literal()
            .is_none_or(|path| path.starts_with(['/', '~']) || path.split('/').any(|part| part == ".."))
    };
    let elsewhere = read
        .given
        .iter()
        .filter(|given| matches!(given.name.as_str(), "-C" | "--directory"))
        .filter_map(|given| given.value.as_ref())
        .find(|value| {
            leaves(value)
                && !(1..arguments.words.len())
                    .any(|at| arguments.is_named(at) && arguments.words[at] == **value)
        });
    if elsewhere.is_some() {
        return Err("make may run the makefile of another directory".to_owned());
    }
    for index in read.operands.iter().copied().filter(|index| !arguments.is_named(*index)) {
        let word = &arguments.words[index];
        let Some(text) = word.literal() else {
            return Err("an argument of make is only known when it runs".to_owned());
        };
        if let Some((name, value)) = text.split_once('=')
            && !is_plain_assignment(name, value)
        {
            return Err(format!("the assignment {text} may run something"));
        }
    }
    Ok(Use::default())
}

/// True if make runs nothing because of an assignment: its value is not expanded, no shell could read more
/// than words in it, and it names no program.
fn is_plain_assignment(name: &str, value: &str) -> bool {
    let variable = name.trim_end_matches([':', '?', '+', ' ', '\t']);
    // `!=` runs its value.
    let is_name = !variable.is_empty()
        && variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    let is_text = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./,:+=@%~ -".contains(&byte));
    let names_a_program = is_listed(PROGRAMS, variable) && value.contains(['/', ' ', '=']);
    let is_shell =
        variable.contains("SHELL") || is_listed("MAKE MAKEFLAGS GNUMAKEFLAGS MFLAGS MAKEFILES", variable);
    is_name && is_text && !names_a_program && !is_shell
}

#[cfg(test)]
mod tests {
    use super::is_plain_assignment;

    #[test]
    fn an_assignment_is_plain_if_it_can_run_nothing() {
        for text in
            ["CC=gcc", "CFLAGS=-O2 -g", "PREFIX=/usr/local", "V=1", "A:=b", "A?=b", "DESTDIR=", "N=50%"]
        {
            let (name, value) = text.split_once('=').unwrap();
            assert!(is_plain_assignment(name, value), "{text}");
        }
        for text in [
            "A:=$(shell touch X)",
            "A=${shell touch X}",
            "A!=touch X",
            "A=`touch X`",
            "A=b;touch X",
            "A=b\ntouch X",
            "A=b&touch X",
            "A=b>X",
            "SHELL=./evil",
            ".SHELLFLAGS=-c touch",
            "MAKEFLAGS=-E x",
            "CC=./evil",
            "CC=touch X",
            "MAKEFILES=evil.mk",
            "A$(x)=b",
        ] {
            let (name, value) = text.split_once('=').unwrap();
            assert!(!is_plain_assignment(name, value), "{text}");
        }
    }
}
