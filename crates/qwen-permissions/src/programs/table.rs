//! Programs whose arguments are plain: a list of harmless options, and what the rest of the words are.

use super::{Arguments, Refusal, Use};
use crate::shell::Word;
use crate::shell::options::{Options, is_listed};

/// A program.
pub(super) struct Program {
    names: &'static str,
    options: Options,
    operands: Operands,
    /// Options that are not listed may run or write something, so none may come out of a word unseen.
    hazards: bool,
    only_reads: bool,
}

/// What the words that are no options are.
#[derive(Clone, Copy)]
enum Operands {
    /// None are expected.
    None,
    /// Text that is only looked at.
    Text,
    /// Files that are read.
    Paths,
    /// One file at most: a second one would be written.
    OnePath,
    /// A pattern, unless one of these options gives it or there is none; then files.
    Pattern { given_by: &'static [&'static str] },
    /// A format that begins with a plus sign: anything else would set something.
    Format,
    /// Addresses and names of machines, which must be literal, because their text is sent over the network.
    Remote,
    /// Files for a program that takes commands behind a plus sign.
    NoCommands,
}

/// Finds a program.
pub(super) fn program(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| is_listed(program.names, name))
}

impl Program {
    pub(super) fn examine(&self, arguments: Arguments<'_>) -> Result<Use, Refusal> {
        let read = arguments.read(1, &self.options, self.hazards)?;
        let name = arguments.name();
        let operands = match self.operands {
            Operands::None | Operands::Text => &[][..],
            Operands::Paths => &read.operands,
            Operands::OnePath => {
                let expands = arguments.words_at(&read.operands).iter().any(|word| word.literal().is_none());
                if read.operands.len() > 1 || expands {
                    return Err(format!("{name} may write its second file"));
                }
                &read.operands
            }
            Operands::Pattern { given_by } => {
                let skip = usize::from(!read.has(given_by));
                read.operands.get(skip..).unwrap_or(&[])
            }
            Operands::Format => {
                let formats =
                    arguments.words_at(&read.operands).iter().all(|word| word.known_start().starts_with('+'));
                if !formats {
                    return Err(format!("{name} may set something"));
                }
                &[]
            }
            Operands::NoCommands => {
                if arguments.words_at(&read.operands).iter().any(|word| word.known_start().starts_with('+')) {
                    return Err(format!("{name} may run something"));
                }
                &[]
            }
            Operands::Remote => {
                let values = read.given.iter().filter_map(|given| given.value.as_ref());
                if values.clone().any(|value| value.known_start().starts_with('@')) {
                    return Err(format!("{name} may send a file"));
                }
                if arguments.words.iter().chain(values).any(|word| word.literal().is_none()) {
                    return Err(format!("{name} may send what is only known when it runs"));
                }
                &[]
            }
        };
        if matches!(self.operands, Operands::None) && !read.operands.is_empty() {
            return Err(format!("{name} is not known to take operands"));
        }
        let lists = |word: &Word| word.known_start().starts_with('@') || word.known_start().is_empty();
        if name == "strings" && arguments.words_at(&read.operands).iter().any(lists) {
            return Err("strings may take its arguments from a file".to_owned());
        }
        if name == "tar"
            && read.given.iter().any(|given| given.name == "-f" && names_a_machine(given.value.as_ref()))
        {
            return Err("tar may start a program to reach another machine".to_owned());
        }
        Ok(Use {
            only_reads: self.only_reads,
            // `diff` compares two directories file by file even without a recursive option.
            follows_links: name == "diff",
            paths: arguments.words_at(operands),
            git: None,
        })
    }
}

fn names_a_machine(value: Option<&Word>) -> bool {
    value.is_some_and(|value| value.literal().is_none_or(|value| value.contains(':')))
}

const fn options(
    letters: &'static str,
    letters_with_value: &'static str,
    names: &'static str,
    names_with_value: &'static str,
) -> Options {
    Options { letters, letters_with_value, names, names_with_value }
}

/// A program that only reads, and none of whose options does more.
const fn reader(names: &'static str, options: Options, operands: Operands) -> Program {
    Program { names, options, operands, hazards: false, only_reads: true }
}

/// A program that only reads with the options listed, and has others that do more.
const fn careful_reader(names: &'static str, options: Options, operands: Operands) -> Program {
    Program { names, options, operands, hazards: true, only_reads: true }
}

/// A program that needs a rule, and has options that no wildcard covers.
const fn needs_rule(names: &'static str, options: Options, operands: Operands) -> Program {
    Program { names, options, operands, hazards: true, only_reads: false }
}

static PROGRAMS: &[Program] = &[
    reader("true false : break continue exit return shift", Options::NONE, Operands::Text),
    reader("pwd", options("LP", "", "logical physical", ""), Operands::None),
    reader("read", options("r", "d", "", ""), Operands::Text),
    reader("whoami arch tty logname", Options::NONE, Operands::None),
    reader("nproc", options("", "", "all", ""), Operands::None),
    reader("id groups", options("agGnruz", "", "group groups name real user zero", ""), Operands::Text),
    reader(
        "uname",
        options("asnrvmpio", "", "all kernel-name nodename kernel-release machine operating-system", ""),
        Operands::None,
    ),
    reader("which", options("a", "", "all", ""), Operands::Text),
    reader("type", options("afptP", "", "", ""), Operands::Text),
    reader("command", options("vV", "", "", ""), Operands::Text),
    reader("sleep", Options::NONE, Operands::Text),
    reader("seq", options("w0123456789.", "fs", "equal-width", "format separator"), Operands::Text),
    reader("expr", Options::NONE, Operands::Text),
    reader("basename dirname", options("az", "s", "multiple zero", "suffix"), Operands::Text),
    reader(
        "cat",
        options(
            "AbeEnstTuv",
            "",
            "number number-nonblank show-all show-ends show-tabs squeeze-blank show-nonprinting",
            "",
        ),
        Operands::Paths,
    ),
    reader("tac rev", options("br", "s", "before regex", "separator"), Operands::Paths),
    reader(
        "nl",
        options("p", "bdfhilnsvw", "", "body-numbering number-format number-width number-separator"),
        Operands::Paths,
    ),
    reader(
        "head tail",
        options("qvz0123456789", "nc", "quiet silent verbose zero-terminated", "lines bytes"),
        Operands::Paths,
    ),
    reader("wc", options("clmwL", "", "bytes chars lines words max-line-length", ""), Operands::Paths),
    reader(
        "cut",
        options(
            "nsz",
            "bcdf",
            "complement only-delimited zero-terminated",
            "bytes characters delimiter fields output-delimiter",
        ),
        Operands::Paths,
    ),
    reader("tr", options("cCdst", "", "complement delete squeeze-repeats truncate-set1", ""), Operands::Text),
    reader(
        "fold expand unexpand paste",
        options("absiz", "wtd", "bytes spaces all initial serial", "width tabs delimiters"),
        Operands::Paths,
    ),
    reader(
        "comm cmp",
        options(
            "123bls",
            "in",
            "check-order nocheck-order total silent quiet print-bytes verbose",
            "output-delimiter bytes ignore-initial",
        ),
        Operands::Paths,
    ),
    reader("join", options("i", "1234567890aejotv", "ignore-case header", ""), Operands::Paths),
    reader("column", options("tx", "sco", "table", "separator output-separator"), Operands::Paths),
    reader(
        "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum",
        options("btz", "", "binary text tag zero", ""),
        Operands::Paths,
    ),
    reader(
        "od hexdump",
        options("bcdoxvC", "ANjnt", "", "address-radix format read-bytes skip-bytes"),
        Operands::Paths,
    ),
    reader("strings", options("aw", "nt", "all", "bytes radix"), Operands::Paths),
    reader(
        "ls dir vdir",
        options(
            "1aAbBcCdfFgGhiklmnNopqQrRsStuUvxXZ",
            "Iw",
            "all almost-all author classify color directory file-type full-time group-directories-first \
             human-readable inode no-group numeric-uid-gid recursive reverse si size",
            "block-size format hide ignore indicator-style sort time time-style width",
        ),
        Operands::Paths,
    ),
    reader("stat", options("Lft", "c", "terse", "format printf"), Operands::Paths),
    reader(
        "du",
        options(
            "0abchklmSsx",
            "dt",
            "all apparent-size bytes human-readable one-file-system si summarize total",
            "block-size exclude max-depth threshold time-style",
        ),
        Operands::Paths,
    ),
    reader(
        "df",
        options(
            "ahHiklPT",
            "Btx",
            "all human-readable inodes local portability print-type si total",
            "block-size type exclude-type",
        ),
        Operands::Paths,
    ),
    reader(
        "realpath readlink",
        options(
            "efmnqsz",
            "",
            "canonicalize canonicalize-existing canonicalize-missing no-newline no-symlinks zero",
            "",
        ),
        Operands::Paths,
    ),
    reader(
        "grep egrep fgrep",
        options(
            "acEFGhHiIlLnoPqrsTvwxyZ0123456789",
            "ABCDedm",
            "basic-regexp byte-offset color colour count extended-regexp files-with-matches \
             files-without-match fixed-strings ignore-case initial-tab invert-match line-number \
             line-regexp no-filename no-ignore-case no-messages null only-matching perl-regexp quiet \
             recursive silent text with-filename word-regexp",
            "after-context before-context binary-files context directories exclude exclude-dir include \
             label max-count regexp",
        ),
        Operands::Pattern { given_by: &["-e", "--regexp"] },
    ),
    careful_reader(
        "rg",
        options(
            "abcFHiIlnNopPqsSuUvwx0.",
            "ABCdeEgjmMrtT",
            "block-buffered byte-offset case-sensitive column count count-matches crlf files \
             files-with-matches files-without-match fixed-strings glob-case-insensitive heading hidden \
             ignore-case invert-match json line-buffered line-number line-regexp max-columns-preview \
             multiline multiline-dotall no-config no-filename no-heading no-ignore no-ignore-vcs \
             no-line-number no-messages null one-file-system only-matching passthru pcre2 pretty quiet \
             smart-case stats text trim unrestricted vimgrep with-filename word-regexp",
            "after-context before-context color colors context context-separator encoding glob iglob \
             max-columns max-count max-depth max-filesize regexp replace sort sortr threads type type-not",
        ),
        Operands::Pattern { given_by: &["-e", "--regexp", "--files"] },
    ),
    careful_reader(
        "sort",
        options(
            "bcCdfghiMmnrRsuVz",
            "kt",
            "check dictionary-order general-numeric-sort human-numeric-sort ignore-case \
             ignore-leading-blanks month-sort numeric-sort reverse stable unique version-sort \
             zero-terminated",
            "field-separator key sort",
        ),
        Operands::Paths,
    ),
    careful_reader(
        "uniq",
        options(
            "cdDiuz",
            "fsw",
            "count repeated all-repeated ignore-case unique zero-terminated",
            "skip-fields skip-chars check-chars",
        ),
        Operands::OnePath,
    ),
    careful_reader(
        "diff",
        options(
            "abBcdeEiNnpqrstTuwyZ0123456789",
            "CIUW",
            "brief color context expand-tabs ignore-all-space ignore-blank-lines ignore-case \
             ignore-space-change minimal new-file recursive report-identical-files side-by-side \
             strip-trailing-cr suppress-common-lines text unified",
            "exclude ignore-matching-lines label width",
        ),
        Operands::Paths,
    ),
    careful_reader(
        "date",
        options("uRI", "d", "utc universal rfc-email iso-8601 rfc-3339", "date"),
        Operands::Format,
    ),
    careful_reader(
        "file",
        options("bhikN0", "F", "brief mime mime-type mime-encoding no-pad no-dereference", "separator"),
        Operands::Paths,
    ),
    careful_reader(
        "tree",
        options("adfhispugDFqNCnAJX", "LIP", "dirsfirst du gitignore noreport prune si", "filelimit sort"),
        Operands::Paths,
    ),
    careful_reader("xxd", options("beiup", "clos", "plain bits upper", ""), Operands::OnePath),
    careful_reader("base64 base32", options("dD", "w", "decode ignore-garbage", "wrap"), Operands::OnePath),
    needs_rule(
        "tar gtar bsdtar",
        options(
            "ctxzjJvkmpOPaZrhuAd",
            "fC",
            "create list extract get gzip bzip2 xz zstd verbose keep-old-files no-same-owner to-stdout \
             auto-compress wildcards no-recursion",
            "directory strip-components exclude transform mtime owner group sort",
        ),
        Operands::Text,
    ),
    needs_rule(
        "curl",
        options(
            "fgGiIkLNsSv46#",
            "AdeHmuXrYyz",
            "compressed fail get head http1.1 http2 include insecure ipv4 ipv6 location no-buffer \
             no-progress-meter progress-bar show-error silent verbose fail-with-body",
            "connect-timeout data data-raw header max-redirs max-time referer request retry retry-delay \
             url user user-agent",
        ),
        Operands::Remote,
    ),
    needs_rule(
        "wget",
        options(
            "qScN46",
            "tT",
            "quiet no-verbose server-response spider continue",
            "timeout tries user-agent",
        ),
        Operands::Remote,
    ),
    needs_rule(
        "rsync",
        options(
            "avzrlptgoDnhPuxcHAXRSqWi",
            "",
            "archive verbose compress recursive dry-run human-readable progress delete stats update",
            "exclude include max-size min-size bwlimit",
        ),
        Operands::Remote,
    ),
    needs_rule("ssh", options("46AaCNnqTtvx", "ilp", "", ""), Operands::Remote),
    needs_rule("scp sftp", options("46CpqrTv", "iP", "", ""), Operands::Remote),
    needs_rule("man", options("afkwW", "sS", "all apropos whatis where path", "sections"), Operands::Text),
    needs_rule("less more", options("eEfFgiIMmnNqQrRsSX", "", "", ""), Operands::NoCommands),
    needs_rule("vim vi nvim view emacs nano", Options::NONE, Operands::NoCommands),
    needs_rule(
        "fd fdfind",
        options(
            "HIusigpalL0tF",
            "etdEjS",
            "hidden no-ignore absolute-path list-details follow full-path glob ignore-case print0",
            "extension type max-depth min-depth exclude size changed-within color",
        ),
        Operands::Text,
    ),
];
