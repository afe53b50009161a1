//! Programs that run the tasks of a project and write where their arguments direct them. A rule for one
//! permits that, but not to run what is not the project's: another shell, other tools, other settings,
//! another directory.

use super::Arguments;
use crate::shell::Word;
use crate::shell::options::is_listed;

const BUILDERS: &str = "bundle bunx c++ cargo cc clang clang++ cmake docker g++ gcc go gradle gradlew just kubectl make meson mvn ninja \
 npm npx pnpm podman poetry rustc tsc uv uvx yarn";

/// Options by which any of them runs something else.
const RUN_OTHERS: &str = "eval exec init-script node-options script-shell shell toolexec vettool";

/// Options that choose the directory whose tasks run.
const DIRECTORIES: &str =
    "chdir cwd dir directory manifest-path prefix project-dir project-directory working-directory";

/// Further options of single programs: letters behind one dash, and names.
const OTHERS: &[(&str, &str, &str)] = &[
    ("c++ cc clang clang++ g++ gcc", "B", "fplugin iplugindir ld-path load plugin prefix specs wrapper"),
    ("cargo", "", "config"),
    ("cmake", "EP", ""),
    ("docker podman", "H", "config connection context host url"),
    ("gradle gradlew", "Ibcp", "build-file project-dir settings-file"),
    ("just", "cf", "command dotenv-path justfile"),
    ("kubectl", "", "cache-dir kubeconfig profile-output"),
    ("mvn", "", "f file s settings"),
    ("ninja", "f", ""),
    ("npm npx pnpm", "c", "call editor globalconfig userconfig viewer"),
];

/// Package managers whose parser (nopt) accepts any number of dashes, beginnings of names, a `no-` in front of
/// any of them, and names that it does not know, which scripts then see as variables.
const NOPT: &str = "npm npx pnpm";

/// Their options that neither run nor write something else.
const NOPT_HARMLESS: &str = "access aggregate-output all audit audit-level B bail ci color D d dd ddd depth dev dry-run E \
 engine-strict expect-result-count F f fail-if-no-match fetch-retries fetch-timeout filter force foreground-scripts frozen-lockfile fund g global h help \
 if-present ignore-scripts include include-workspace-root install-links install-strategy json l latest legacy-peer-deps lockfile-only \
 lockfile-version loglevel long n no O offline omit only optional otp P p package package-lock package-lock-only parallel parseable \
 prefer-dedupe prefer-offline prod production progress q quiet r recursive reporter reporter-hide-prefix resume-from s S save save-bundle save-dev save-exact save-optional \
 save-peer save-prefix save-prod scope shamefully-hoist silent sort stream strict-peer-deps tag timing unicode update-notifier usage \
 v verbose version w watch workspace workspace-concurrency workspace-root workspaces y yes prefix dir C";

/// Subcommands that change what runs later, or run their own words.
const SUBCOMMANDS: &[(&str, &str)] =
    &[("npm", "c config edit explore set"), ("pnpm", "c config set"), ("yarn", "config")];

pub(super) fn is_builder(name: &str) -> bool {
    is_listed(BUILDERS, name)
}

/// Why a rule with a wildcard does not cover a word of such a program, if so.
pub(super) fn refusal(arguments: Arguments<'_>) -> Option<String> {
    let name = arguments.name();
    let words = arguments.words;
    // The words after `--` belong to the task.
    let end = words.iter().position(|word| word.literal() == Some("--")).unwrap_or(words.len());
    let end = if passes_on_options(name, words) { words.len() } else { end };
    let open = |index: usize| !arguments.is_named(index);
    let subcommand = (1..end).find(|index| !words[*index].known_prefix().starts_with('-'));
    let changes = |index: &usize| {
        let listed = SUBCOMMANDS.iter().any(|(programs, listed)| {
            is_listed(programs, name) && is_listed(listed, words[*index].known_prefix())
        });
        let reads =
            words.get(index + 1).and_then(Word::literal).is_some_and(|word| is_listed("get list ls", word));
        let sets_package = name == "npm"
            && words[*index].literal() == Some("pkg")
            && words.get(index + 1).and_then(Word::literal) != Some("get");
        let sets_variable = name == "go"
            && words[*index].literal() == Some("env")
            && words.iter().any(|word| matches!(word.literal(), Some("-w" | "-u")));
        (listed && !reads) || sets_package || sets_variable
    };
    if let Some(index) = subcommand.filter(changes).filter(|index| open(*index)) {
        return Some(format!("{} of {name} may change what runs", words[index].known_prefix()));
    }
    if is_listed(NOPT, name) {
        // What follows the package belongs to it.
        let end = if name == "npx" { subcommand.unwrap_or(end) } else { end };
        let unknown = (1..end).filter(|index| open(*index)).find(|index| !is_known_to_nopt(&words[*index]));
        if let Some(index) = unknown {
            let text = words[index].known_prefix();
            return Some(format!("{text} of {name} is not known to be harmless"));
        }
    }
    (1..end).filter(|index| open(*index)).find_map(|index| {
        let next = words.get(index + 1).filter(|_| index + 1 < end).map_or("", Word::known_prefix);
        let text = words[index].known_prefix();
        runs_others(name, text, next).then(|| format!("{text} may run something that is not the project's"))
    })
}

/// True if the words after `--` are options of a compiler.
fn passes_on_options(name: &str, words: &[Word]) -> bool {
    name == "cargo" && words.iter().any(|word| matches!(word.literal(), Some("rustc" | "rustdoc")))
}

/// True if a word is an operand, or an option in full whose meaning is known.
fn is_known_to_nopt(word: &Word) -> bool {
    let text = word.known_prefix();
    let Some(option) = text.strip_prefix('-') else { return true };
    let option = option.trim_start_matches('-').split('=').next().unwrap_or("");
    let positive = option.strip_prefix("no-").unwrap_or(option);
    word.literal().is_some() && (option.is_empty() || is_listed(NOPT_HARMLESS, positive))
}

fn runs_others(program: &str, text: &str, next: &str) -> bool {
    if is_tool_choice(program, text, next) {
        return true;
    }
    let Some(behind) = text.strip_prefix('-') else { return false };
    let (option, value) = match behind.trim_start_matches('-').split_once('=') {
        Some((option, value)) => (option, value),
        None => (behind.trim_start_matches('-'), next),
    };
    let (letters, names) = OTHERS
        .iter()
        .find(|(programs, ..)| is_listed(programs, program))
        .map_or(("", ""), |(_, letters, names)| (*letters, *names));
    let is_long = text.starts_with("--");
    // A negation takes a value with some parsers, and some compare without regard to case.
    let plain = option.to_ascii_lowercase();
    let plain = plain.strip_prefix("no-").unwrap_or(&plain);
    let begins = |name: &str| plain.len() >= 3 && name.starts_with(plain);
    let is_name = |list: &str| {
        is_listed(list, option)
            || is_listed(list, plain)
            || (is_long && list.split(' ').any(|name| !name.contains('-') && begins(name)))
            // By a beginning that no other option of these programs has.
            || list.split(' ').any(|name| begins(name) && name.split_once('-').is_some_and(|(start, _)| plain.len() > start.len()))
    };
    let is_letter = !is_long && behind.chars().next().is_some_and(|letter| letters.contains(letter));
    let leaves = value.starts_with(['/', '~']) || value.split('/').any(|part| part == "..");
    let elsewhere =
        is_listed(DIRECTORIES, option) || (!is_long && behind == "C" && !program.starts_with("rust"));
    is_name(RUN_OTHERS) || is_name(names) || is_letter || (elsewhere && leaves)
}

/// True if a word chooses a tool that a compiler or builder starts.
fn is_tool_choice(program: &str, text: &str, next: &str) -> bool {
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    match program {
        "cargo" | "rustc" => {
            has(&["linker="]) || (matches!(text, "-C" | "--codegen") && next.starts_with("linker"))
        }
        "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" => {
            text.starts_with('@') || has(&["-plugin", ",-load"])
        }
        "go" => has(&["-extld", "-extar", "-wrapper", "-fplugin", "-overlay"]),
        "uv" | "uvx" => {
            let value =
                text.strip_prefix("--python=").or((matches!(text, "--python" | "-p")).then_some(next));
            value.is_some_and(|interpreter| interpreter.contains('/'))
        }
        "cmake" => {
            text.starts_with("-D")
                && ["COMPILER", "LAUNCHER", "LINKER", "_COMMAND", "PROGRAM"]
                    .iter()
                    .any(|part| text.contains(part))
                && text.contains('/')
        }
        "mvn" => text.starts_with("exec:") || text.starts_with("-Dexec.") || text.starts_with("antrun:"),
        _ => false,
    }
}
