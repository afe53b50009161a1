//! `find`: its paths, then an expression of tests. Actions other than printing are not listed.

use super::{Arguments, Refusal, Use};
use crate::shell::options::is_listed;

/// Tests and actions without an operand.
const ALONE: &str = "! ( ) , -a -and -daystart -depth -empty -executable -false -ignore_readdir_race -ls -mount -nogroup \
 -noignore_readdir_race -noleaf -not -nouser -nowarn -o -or -print -print0 -prune -quit -readable -true -warn -writable -xdev";

/// Tests and actions with one operand.
const WITH_OPERAND: &str = "-amin -atime -cmin -context -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename -links -lname \
 -maxdepth -mindepth -mmin -mtime -name -newerat -newerct -newermt -path -perm -printf -regex -regextype -size -type -uid -used \
 -user -wholename -xtype";

/// Tests whose operand is a file.
const WITH_PATH: &str = "-newer -anewer -cnewer -samefile";

/// True for a test or an option that takes an operand.
pub(crate) fn is_find_test(text: &str) -> bool {
    is_listed(WITH_OPERAND, text) || is_listed(WITH_PATH, text)
}

pub(super) fn examine(arguments: Arguments<'_>) -> Result<Use, Refusal> {
    let mut used = Use { only_reads: true, ..Use::default() };
    let mut index = 1;
    let mut in_expression = false;
    while let Some(word) = arguments.words.get(index) {
        index += 1;
        let Some(text) = word.literal() else {
            if in_expression || word.may_hide_an_option() {
                return Err(
                    "an action of find could come out of a word that is only known when it runs".to_owned()
                );
            }
            used.paths.push(word.clone());
            continue;
        };
        let begins_expression = text.starts_with('-') || matches!(text, "!" | "(" | ")" | ",");
        if !in_expression && !begins_expression {
            used.paths.push(word.clone());
            continue;
        }
        if !in_expression && matches!(text, "-P" | "-H" | "--") {
            continue;
        }
        in_expression = true;
        if is_listed(ALONE, text) {
            continue;
        }
        if is_find_test(text) {
            match arguments.words.get(index) {
                Some(operand) if operand.literal().is_some() => {
                    if is_listed(WITH_PATH, text) {
                        used.paths.push(operand.clone());
                    }
                    index += 1;
                }
                _ => return Err(format!("what {text} of find gets is only known when it runs")),
            }
            continue;
        }
        if arguments.is_named(index - 1) {
            used.only_reads = false;
            continue;
        }
        // The words after an action belong to it.
        if !used.only_reads && !text.starts_with('-') {
            continue;
        }
        return Err(format!("{text} of find is not known to be harmless"));
    }
    Ok(used)
}
