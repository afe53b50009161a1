//! Unknown programs: a rule that names one covers its arguments, except for a few options that commonly run a
//! program or write a file.

use super::builders::{self, is_builder};
use super::{Arguments, Refusal, Use, hazards};
use crate::shell::options::is_listed;
use crate::shell::{self, Word, basename};

/// Options that run or write, without their dashes.
const RUN_OR_WRITE: &str = "browser checkpoint-action command compress-program editor eval exec exec-batch exec-path execdir \
 ext-diff fprint fprint0 fprintf fls hostname-bin info-script init-command init-file ld-preload ok okdir \
 open-files-in-pager out out-file outfile output output-document output-file pager pre preload rcfile receive-pack \
 rmt-command rsh rsh-command rsync-path script-shell shell to-command upload-pack use-askpass \
 use-compress-program";

/// Interpreters: a rule that names one permits running code.
const INTERPRETERS: &str = "bash bun dash deno expect irb java jrunscript jshell julia lua m4 node nodejs octave perl php python python2 python3 Rscript \
 ruby sh tclsh tsx wish zsh";

pub(super) fn examine(arguments: Arguments<'_>) -> Result<Use, Refusal> {
    let name = arguments.name();
    if is_interpreter(name) {
        return match named_module(arguments) {
            Some(module) => examine_module(module),
            None => Ok(Use::default()),
        };
    }
    let refused = if is_builder(name) {
        builders::refusal(arguments)
    } else {
        hazards::refusal(arguments, shell::wrappers::launches(arguments.words))
    };
    if let Some(problem) = refused {
        return Err(problem);
    }
    if hazards::reads_code_from_input(arguments) {
        return Err(format!("{name} runs what it reads from its input"));
    }
    for (index, word) in arguments.words.iter().enumerate().skip(1) {
        // The program might also disclose a secret that comes from a file.
        if matches!(word, Word::Dynamic(dynamic) if dynamic.glob.is_none()) {
            return Err(format!("an argument of {name} is only known when it runs"));
        }
        let text = word.known_prefix();
        let option = text.trim_start_matches('-').split('=').next().unwrap_or("");
        // Many programs take a unique beginning for the whole name.
        let is_shortened = text.starts_with("--")
            && option.len() >= 3
            && RUN_OR_WRITE.split(' ').any(|hazard| !hazard.contains('-') && hazard.starts_with(option));
        let acts = text.starts_with('-') && (is_listed(RUN_OR_WRITE, option) || is_shortened);
        let writes = !is_inert(name) && names_an_output(text, arguments.words.get(index + 1));
        if (acts || writes) && !is_builder(name) && !arguments.is_named(index) {
            return Err(format!("{text} may run or write something"));
        }
    }
    Ok(Use::default())
}

/// The module that an interpreter runs as a program and that a rule lists, with its arguments. A rule that lists no
/// module permits any code.
fn named_module(arguments: Arguments<'_>) -> Option<Arguments<'_>> {
    let is_listed_module = |index: &usize| {
        arguments.words[*index].literal() == Some("-m")
            && arguments.is_named(*index)
            && arguments.is_named(index + 1)
    };
    let at = (1..arguments.words.len().saturating_sub(1)).find(is_listed_module)? + 1;
    Some(Arguments { words: &arguments.words[at..], named: arguments.named.get(at..).unwrap_or(&[]) })
}

/// Whether a rule for a module of Python covers its arguments.
fn examine_module(module: Arguments<'_>) -> Result<Use, Refusal> {
    let words = module.words;
    let operands = (1..words.len()).filter(|index| !words[*index].known_prefix().starts_with('-'));
    let output = operands.filter(|index| !module.is_named(*index)).nth(1);
    match (module.name(), output) {
        ("json.tool", Some(index)) => Err(format!("json.tool writes {}", words[index].known_prefix())),
        ("pip" | "pytest", _) => examine(module),
        _ => Ok(Use::default()),
    }
}

/// Values of `-o` that choose a format.
const FORMATS: &str = "custom-columns csv go-template html json jsonl jsonpath long markdown md name ndjson none plain pretty raw \
 short table text toml tsv wide xml yaml yml";

/// True for `-o FILE`, by which most programs name the file that they write.
fn names_an_output(text: &str, next: Option<&Word>) -> bool {
    // `-only` and the like are complete names.
    let is_name = |behind: &str| {
        behind.len() > 2 && behind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    let value = match text {
        "-o" | "-O" => next.map(Word::known_prefix),
        _ => text.strip_prefix("-o").or_else(|| text.strip_prefix("-O")).filter(|behind| !is_name(behind)),
    };
    value.map(|value| value.trim_start_matches('=')).is_some_and(|value| {
        let format = value.split('=').next().unwrap_or(value);
        !value.is_empty() && !value.starts_with('-') && !is_listed(FORMATS, format)
    })
}

/// Further programs that run another one, or a text, from among their words.
const LAUNCHERS: &str = ". awk conda direnv expect gawk mise nc nix nix-shell pipx source ssh vim";

/// Subcommands of such programs whose arguments are names in another namespace (packages, containers, resources) and
/// never programs that run.
const NAMING: &[(&str, &str)] = &[
    ("cargo", "add info remove rm search"),
    ("docker podman", "images inspect kill logs ps pull push restart rm rmi start stop tag top"),
    ("kubectl", "delete describe get logs top"),
    (
        "npm pnpm yarn",
        "add i info install list ls outdated remove rm search show un uninstall update upgrade view why",
    ),
    ("poetry uv", "add remove"),
];

/// True if the words of a command are names for its program, and never programs that it runs.
pub(crate) fn only_names_things(words: &[Word]) -> bool {
    let Some(name) = words.first().and_then(Word::literal).map(basename) else { return false };
    let subcommand = words.get(1).and_then(Word::literal).unwrap_or("");
    NAMING.iter().any(|(programs, listed)| is_listed(programs, name) && is_listed(listed, subcommand))
}

/// Programs that run none of their words; nothing else is known about them.
const INERT: &str = "apk apropos apt apt-cache apt-get brew cd chgrp chmod chown code cp dd dnf dpkg dpkg-query gem gh glab gunzip \
 gzip info install kill killall ln mkdir mount mv open pacman pgrep pip pip3 pkill ps rm rmdir rpm service shred systemctl \
 tee tldr touch truncate umount unset unzip whatis whereis xdg-open yum zcat";

/// True if it is known of a program, one way or the other, what it does with its words.
pub(super) fn is_inert(name: &str) -> bool {
    is_listed(INERT, name)
}

/// True if a program may run what stands among its words, so a denied name among them asks.
pub(crate) fn runs_its_arguments(name: &str) -> bool {
    let is_loader = name == "ld.so" || name.starts_with("ld-linux") || name.starts_with("ld-musl");
    is_interpreter(name)
        || is_loader
        || is_builder(name)
        || hazards::is_runner(name)
        || is_listed(LAUNCHERS, name)
}

/// True if a program runs code that it is given.
fn is_interpreter(name: &str) -> bool {
    is_listed(INTERPRETERS, name)
        || name.strip_prefix("python").is_some_and(|rest| rest.starts_with(['2', '3']))
}
