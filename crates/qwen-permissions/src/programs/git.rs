//! `git`: read-only subcommands with their harmless options, and what a rule for other subcommands covers.

use super::{Arguments, Read, Refusal, Use};
use crate::shell::Word;
use crate::shell::options::{Options, is_listed, options};

/// A read-only subcommand.
struct ReadOnlySubcommand {
    names: &'static str,
    options: Options,
    operands: Operands,
}

/// The operands that a subcommand accepts.
enum Operands {
    /// Revisions and paths.
    Any,
    /// Nothing.
    None,
    /// At most one name.
    One,
    /// Patterns, but only with an option that asks for a list: without one, git would create refs of these
    /// names.
    WithList,
    /// One of these words first, or nothing unless `required` is set.
    Action { words: &'static [&'static str], required: bool },
    /// A pattern, then revisions and paths.
    Pattern,
    /// The name of a setting, or what an option or a subcommand that only reads takes.
    Setting,
}

/// Subcommands that change something, and that a rule such as `git *` may cover.
const CHANGERS: &str = "add am apply archive bisect branch checkout cherry-pick clean clone commit fetch format-patch fsck gc init \
 ls-remote merge mv notes prune pull push rebase reflog remote repack rerere reset restore revert rm sparse-checkout stash submodule \
 switch tag update-index worktree";

/// The actions of subcommands that have others which run what they are given.
const ACTIONS: &[(&str, &str)] = &[
    ("bisect", "bad good log new next old reset skip start terms"),
    ("submodule", "absorbgitdirs add deinit init set-branch set-url status summary sync update"),
];

/// Of those, the ones that reach other machines.
const NETWORKERS: &str = "archive clone fetch ls-remote pull push remote submodule";

/// Options that run a program or write to a given path, in any of these subcommands.
const RUN_OR_WRITE: &str = "config exec ext-diff extcmd no-index open-files-in-pager output output-directory receive-pack \
 separate-git-dir strategy template textconv tool unsafe-paths upload-pack";

pub(super) fn examine(arguments: Arguments<'_>) -> Result<Use, Refusal> {
    let mut directories = Vec::new();
    let mut index = 1;
    let subcommand = loop {
        let Some(text) = arguments.words.get(index).map(Word::literal) else {
            return Ok(Use { only_reads: true, git: Some(directories), ..Use::default() });
        };
        match text {
            None => return Err("the subcommand of git is only known when it runs".to_owned()),
            Some("--no-pager" | "--no-optional-locks" | "--literal-pathspecs" | "--version") => index += 1,
            Some("-C") => {
                directories.extend(arguments.words.get(index + 1).cloned());
                index += 2;
            }
            Some("-c") if arguments.is_named(index) && arguments.is_named(index + 1) => index += 2,
            Some(option) if option.starts_with('-') => {
                if !arguments.is_named(index) {
                    return Err(format!("{option} of git is not known to be harmless"));
                }
                index += 1;
            }
            Some(subcommand) => break subcommand,
        }
    };
    let looked = LOOKERS
        .iter()
        .find(|looker| is_listed(looker.names, subcommand))
        .map(|looker| looker.examine(arguments, index));
    match looked {
        Some(Ok(paths)) => {
            let paths = directories.iter().cloned().chain(paths).collect();
            Ok(Use { only_reads: true, paths, git: Some(directories), ..Use::default() })
        }
        Some(Err(refusal)) if !is_listed(CHANGERS, subcommand) => Err(refusal),
        None if !is_listed(CHANGERS, subcommand) && !arguments.is_named(index) => {
            Err(format!("git {subcommand} may be an alias, or run something"))
        }
        _ => change(arguments, subcommand, index + 1),
    }
}

impl ReadOnlySubcommand {
    /// The words that may be paths.
    fn examine(&self, arguments: Arguments<'_>, subcommand: usize) -> Result<Vec<Word>, Refusal> {
        let read = arguments.read(subcommand + 1, &self.options, true)?;
        let name = arguments.words.get(subcommand).map_or("", Word::known_prefix);
        let operands = arguments.words_at(&read.operands);
        let first = operands.first().map(Word::literal);
        let fits = match self.operands {
            Operands::Any => true,
            Operands::None => operands.is_empty(),
            Operands::One => operands.len() <= 1,
            Operands::WithList => operands.is_empty() || read.has(&["-l", "--list"]),
            Operands::Action { words, required } => match first {
                None => !required,
                Some(first) => first.is_some_and(|first| words.contains(&first)),
            },
            Operands::Pattern => !operands.is_empty(),
            Operands::Setting => {
                reads_setting(&read, &operands) && !shows_all_settings(&read, first.flatten())
            }
        };
        if !fits {
            return Err(format!("git {name} is used in a way that may change something"));
        }
        Ok(match self.operands {
            Operands::Any => operands,
            Operands::Pattern => after_pattern(&read, operands),
            _ => Vec::new(),
        })
    }
}

fn after_pattern(read: &Read, operands: Vec<Word>) -> Vec<Word> {
    let skip = usize::from(!read.has(&["-e"]));
    operands.into_iter().skip(skip).collect()
}

/// True if `git config` is used to read. Without an option or a subcommand that says so, one name is read and
/// a second word would be its new value.
fn reads_setting(read: &Read, operands: &[Word]) -> bool {
    let getters = [
        "-l",
        "--list",
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "--get-color",
        "--get-colorbool",
    ];
    let texts: Option<Vec<&str>> = operands.iter().map(Word::literal).collect();
    texts.is_some_and(|texts| match texts.as_slice() {
        _ if read.has(&getters) => true,
        ["get" | "list", ..] => true,
        [name] => name.contains('.'),
        _ => false,
    })
}

/// True if `git config` shows more than the settings that it names, those of the user included. They may hold
/// secrets.
fn shows_all_settings(read: &Read, first: Option<&str>) -> bool {
    let is_many = read.has(&["-l", "--list", "--get-regexp", "--regexp"]) || first == Some("list");
    is_many && !read.has(&["--local", "--worktree"])
}

/// True if a `git config` command, whose subcommand stands at an index, only reads. Which file it reads does
/// not matter.
pub(crate) fn reads_git_config(words: &[Word], subcommand: usize) -> bool {
    let options =
        Options { letters_with_value: "f", names_with_value: "blob default file type url value", ..CONFIG };
    let arguments = Arguments { words, named: &[] };
    arguments
        .read(subcommand + 1, &options, true)
        .is_ok_and(|read| reads_setting(&read, &arguments.words_at(&read.operands)))
}

/// A subcommand that changes something, for which there must be a rule.
fn change(arguments: Arguments<'_>, subcommand: &str, start: usize) -> Result<Use, Refusal> {
    let letters: &[char] = match subcommand {
        "rebase" | "difftool" => &['x'],
        "clone" => &['u', 'c'],
        "archive" | "format-patch" => &['o'],
        "grep" => &['O'],
        "merge" | "pull" | "cherry-pick" | "revert" => &['s'],
        _ => &[],
    };
    if let Some((_, actions)) = ACTIONS.iter().find(|(listed, _)| *listed == subcommand) {
        let is_option = |index: &usize| arguments.words[*index].known_prefix().starts_with('-');
        let action = (start..arguments.words.len()).find(|index| !is_option(index));
        let is_known = |index: usize| {
            arguments.words[index].literal().is_some_and(|word| is_listed(actions, word))
                || arguments.is_named(index)
        };
        if !action.is_some_and(is_known) {
            return Err(format!("git {subcommand} may run something"));
        }
    }
    let mut only_operands = false;
    for (index, word) in arguments.words.iter().enumerate().skip(start) {
        if arguments.is_named(index) {
            continue;
        }
        let text = word.known_prefix();
        if text.contains("::") {
            return Err(format!("{text} may start a program to reach a repository"));
        }
        only_operands |= word.literal() == Some("--");
        if only_operands {
            continue;
        }
        if is_listed(NETWORKERS, subcommand) && word.literal().is_none() {
            return Err(format!("git {subcommand} may send what is only known when it runs"));
        }
        if word.may_hide_an_option() && !is_message(subcommand, &arguments.words[index - 1], word) {
            return Err(
                "an option of git could come out of a word that is only known when it runs".to_owned()
            );
        }
        let hazard = match text.strip_prefix("--") {
            Some(long) => {
                let given = long.split('=').next().unwrap_or(long);
                !given.is_empty() && RUN_OR_WRITE.split(' ').any(|name| name.starts_with(given))
            }
            None => text.starts_with('-') && text.contains(letters),
        };
        if hazard {
            return Err(format!("{text} of git {subcommand} may run or write something"));
        }
    }
    Ok(Use { git: Some(Vec::new()), ..Use::default() })
}

/// True if a word is the message that the option in front of it asks for, and nothing else.
fn is_message(subcommand: &str, option: &Word, word: &Word) -> bool {
    let whole = matches!(word, Word::Dynamic(dynamic) if !dynamic.splits);
    let asks = option.literal().is_some_and(|option| {
        option == "--message"
            || (option.starts_with('-') && !option.starts_with("--") && option.ends_with('m'))
    });
    whole && asks && matches!(subcommand, "commit" | "merge" | "notes" | "stash" | "tag")
}

/// What `log`, `diff`, `show` and their relatives have in common. Options that include submodules are
/// omitted, because submodules have their own settings.
const HISTORY: Options = options(
    "psuzwbaRtgiEFPqcmrWMCBDev0123456789",
    "nSGUlL",
    "abbrev abbrev-commit all all-match author-date-order binary boundary branches cached check \
     cherry-mark cherry-pick color color-words compact-summary count date-order decorate dirstat email \
     exit-code extended-regexp find-copies find-copies-harder find-renames first-parent fixed-strings \
     follow format full-diff full-history full-index function-context graph histogram ignore-all-space \
     ignore-blank-lines ignore-space-at-eol ignore-space-change invert-grep left-only left-right \
     merge-base merges minimal name-only name-status no-abbrev-commit no-color no-decorate no-ext-diff \
     no-merges no-notes no-patch no-prefix no-renames no-textconv no-walk numbered numstat objects \
     oneline patch patch-with-stat patience perl-regexp pickaxe-all pickaxe-regex pretty quiet raw \
     regexp-ignore-case relative remotes reverse right-only root shortstat simplify-by-decoration staged \
     stat summary tags text topo-order walk-reflogs word-diff",
    "after author before committer date diff-algorithm diff-filter grep inter-hunk-context max-count \
     max-parents min-parents since skip unified until word-diff-regex",
);

/// What `git config` takes to read. The options that change settings are omitted, and so are those that name
/// a file.
const CONFIG: Options = options(
    "lz",
    "",
    "all bool bool-or-int bool-or-str expiry-date fixed-value get get-all get-color get-colorbool get-regexp get-urlmatch \
     global includes int list local name-only no-includes no-type null path regexp show-names show-origin show-scope system \
     worktree",
    "default type url value",
);

static LOOKERS: &[ReadOnlySubcommand] = &[
    ReadOnlySubcommand { names: "config", options: CONFIG, operands: Operands::Setting },
    ReadOnlySubcommand {
        names: "log show diff whatchanged rev-list diff-tree cherry",
        options: HISTORY,
        operands: Operands::Any,
    },
    ReadOnlySubcommand {
        names: "shortlog",
        options: options(
            "nsec",
            "",
            "all committer email no-merges numbered summary",
            "after author before format group since until",
        ),
        operands: Operands::Any,
    },
    ReadOnlySubcommand {
        names: "status",
        options: options(
            "sbvzunoal",
            "",
            "ahead-behind branch column find-renames ignored long no-ahead-behind no-column no-renames \
             porcelain renames short show-stash untracked-files verbose",
            "",
        ),
        operands: Operands::Any,
    },
    ReadOnlySubcommand {
        names: "branch",
        options: options(
            "arv",
            "",
            "abbrev all color column ignore-case list no-color no-column remotes show-current verbose",
            "contains format merged no-contains no-merged points-at sort",
        ),
        operands: Operands::WithList,
    },
    ReadOnlySubcommand {
        names: "tag",
        options: options(
            "ln0123456789",
            "",
            "color column ignore-case list no-column",
            "contains format merged no-contains no-merged points-at sort",
        ),
        operands: Operands::WithList,
    },
    ReadOnlySubcommand {
        names: "remote",
        options: options("v", "", "verbose", ""),
        operands: Operands::Action { words: &["get-url"], required: false },
    },
    ReadOnlySubcommand {
        names: "stash",
        options: HISTORY,
        operands: Operands::Action { words: &["list", "show"], required: true },
    },
    ReadOnlySubcommand {
        names: "worktree",
        options: options("v", "", "porcelain verbose", ""),
        operands: Operands::Action { words: &["list"], required: true },
    },
    ReadOnlySubcommand {
        names: "reflog",
        options: HISTORY,
        operands: Operands::Action { words: &["show"], required: false },
    },
    ReadOnlySubcommand {
        names: "rev-parse",
        options: options(
            "q",
            "",
            "abbrev-ref absolute-git-dir all branches git-common-dir git-dir is-bare-repository \
             is-inside-git-dir is-inside-work-tree is-shallow-repository quiet remotes short show-cdup \
             show-prefix show-toplevel symbolic symbolic-full-name tags verify",
            "",
        ),
        operands: Operands::Any,
    },
    ReadOnlySubcommand {
        names: "ls-files",
        options: options(
            "cdomsuktvzi",
            "x",
            "cached deduplicate deleted directory eol error-unmatch exclude-standard full-name ignored \
             killed modified others stage unmerged",
            "exclude",
        ),
        operands: Operands::Any,
    },
    ReadOnlySubcommand {
        names: "ls-tree",
        options: options(
            "drtlz",
            "",
            "abbrev full-name full-tree long name-only name-status object-only",
            "format",
        ),
        operands: Operands::Any,
    },
    ReadOnlySubcommand { names: "cat-file", options: options("tspe", "", "", ""), operands: Operands::Any },
    ReadOnlySubcommand {
        names: "blame annotate",
        options: options(
            "bltfnsewpckMC",
            "L",
            "abbrev incremental line-porcelain porcelain root show-email show-name show-number",
            "date ignore-rev",
        ),
        operands: Operands::Any,
    },
    ReadOnlySubcommand {
        names: "describe",
        options: options(
            "",
            "",
            "abbrev all always contains exact-match first-parent long tags",
            "candidates exclude match",
        ),
        operands: Operands::Any,
    },
    ReadOnlySubcommand {
        names: "merge-base name-rev",
        options: options("a", "", "all always fork-point independent is-ancestor name-only octopus tags", ""),
        operands: Operands::Any,
    },
    ReadOnlySubcommand {
        names: "for-each-ref show-ref",
        options: options(
            "dsq",
            "",
            "abbrev color dereference hash head heads ignore-case quiet tags verify",
            "contains count format merged no-contains no-merged points-at sort",
        ),
        operands: Operands::Any,
    },
    ReadOnlySubcommand {
        names: "count-objects",
        options: options("vH", "", "human-readable verbose", ""),
        operands: Operands::None,
    },
    ReadOnlySubcommand {
        names: "symbolic-ref",
        options: options("q", "", "quiet short", ""),
        operands: Operands::One,
    },
    ReadOnlySubcommand {
        names: "check-ignore check-attr",
        options: options("aqvnz", "", "all non-matching quiet verbose", ""),
        operands: Operands::Any,
    },
    ReadOnlySubcommand {
        names: "grep",
        options: options(
            "acEFGhHiIlLnopPqvwWz0123456789",
            "ABCem",
            "all-match and break cached color column count extended-regexp files-with-matches \
             files-without-match fixed-strings full-name function-context heading ignore-case \
             invert-match line-number name-only not null only-matching or perl-regexp quiet show-function \
             text untracked word-regexp",
            "after-context before-context context max-count max-depth threads",
        ),
        operands: Operands::Pattern,
    },
    ReadOnlySubcommand { names: "version", options: Options::NONE, operands: Operands::None },
];
