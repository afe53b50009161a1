//! Programs whose grammars are not complete: the options and words by which each of them runs a program,
//! loads code or writes another file than it is there to write. A rule with a wildcard does not cover these.

use super::Arguments;
use crate::shell::Word;
use crate::shell::options::is_listed;

/// What is known to do harm, for some programs.
struct Hazards {
    programs: &'static str,
    /// Letters behind one dash, alone or in a bundle.
    letters: &'static str,
    /// Letters whose value follows, so that the rest of the word is no bundle.
    valued: &'static str,
    /// Names with one dash or two. A beginning counts too, after one dash of three letters or more, and so does
    /// a `no-` in front.
    names: &'static str,
}

const fn hazards(
    programs: &'static str,
    letters: &'static str,
    valued: &'static str,
    names: &'static str,
) -> Hazards {
    Hazards { programs, letters, valued, names }
}

#[rustfmt::skip]
const HAZARDS: &[Hazards] = &[
    hazards("apt apt-cache apt-get aptitude", "oc", "t", "option config-file"),
    hazards("ar gcc-ar gcc-nm gcc-ranlib gold ld ld.bfd ld.gold nm objdump ranlib size", "", "LT", "plugin"),
    hazards("chromium chromium-browser google-chrome", "", "", "gpu-launcher load-extension print-to-pdf renderer-cmd-prefix screenshot user-data-dir utility-cmd-prefix"),
    hazards("cpio", "FO", "CDEHIMRW", "file rsh-command"),
    hazards("diff3 sdiff", "o", "IWL", "diff-program output"),
    hazards("dpkg dpkg-deb", "", "", "admindir instdir post-invoke pre-invoke root status-logger"),
    hazards("gem", "e", "v", "editor"),
    hazards("helm", "", "", "kubeconfig plugin post-renderer registry-config repository-config"),
    hazards("iconv", "o", "ft", "output"),
    hazards("ip", "", "", "b batch"),
    hazards("javac", "", "", "processor processor-path processorpath"),
    hazards("nc ncat netcat", "ceo", "IiMmOPpqsTVWwXx", "exec hex-dump lua-exec output sh-exec"),
    hazards("nmap", "o", "pTDSegi", "datadir resume script"),
    hazards("openssl", "", "", "config engine keyout out provider provider-path writerand"),
    hazards("pandoc", "oFL", "ftrwVMTHABc", "extract-media filter log lua-filter output pdf-engine track-changes"),
    hazards("pip pip3", "", "", "log python"),
    hazards("psql", "fLo", "cdFhPpRTUv", "file log-file output"),
    hazards("py.test pytest", "c", "kmnopW", "basetemp debug junit-xml junitxml log-file override-ini pastebin pdbcls report-log"),
    hazards("rpm rpmbuild", "E", "", "define eval pipe root"),
    hazards("shuf", "o", "in", "output"),
    hazards("split", "", "abClnt", "filter"),
    hazards("ssh-add ssh-keygen", "Ds", "bCEfImNntVYz", ""),
    hazards("tcpdump tshark", "wz", "BCcEeFGiMrsTyYVW", ""),
    hazards("latex lualatex pdflatex pdftex tex xelatex", "", "", "enable-write18 output-directory shell-escape"),
    hazards("yq", "i", "opI", "in-place inplace"),
    hazards("zip", "bmOT", "nPstx", "la lf li log-path logfile-path move out output-file temp-path unzip-command"),
];

/// Programs that run some of their arguments, or what they read, each in its own way.
const RUNNERS: &str = "at batch bwrap capsh choom chrt crontab dbus-run-session ed entr ex fakeroot firejail flock gdb i386 linux32 \
 linux64 lldb logsave ltrace msgexec msgfilter nsenter numactl parallel perf prlimit proot red rlwrap run-parts runuser screen \
 script setarch setpriv sg socat start-stop-daemon strace su systemd-run taskset tmux unbuffer unshare valgrind x86_64 xvfb-run";

/// True if a program runs what stands among its words.
pub(super) fn is_runner(name: &str) -> bool {
    is_listed(RUNNERS, name)
}

/// Words with which such a program only tells something.
const ASKING: &str = "--help --version -V -l -list -ls has-session list-panes list-sessions list-windows ls";

/// Why a rule with a wildcard does not cover a word of a command, if so.
pub(super) fn refusal(arguments: Arguments<'_>, wraps: bool) -> Option<String> {
    let name = arguments.name();
    let words = arguments.words;
    let is_open = |index: usize| !arguments.is_named(index);
    if is_runner(name) && !wraps {
        let asks = words.get(1).and_then(Word::literal).is_some_and(|word| is_listed(ASKING, word));
        let open = (1..words.len()).any(is_open) || words.len() == 1;
        return (open && !asks).then(|| format!("{name} runs what it is given"));
    }
    if name == "gh" && is_open(1) && sets_up_commands(words) {
        return Some("gh may run something, now or later".to_owned());
    }
    let hazards = HAZARDS.iter().find(|hazards| is_listed(hazards.programs, name));
    (1..words.len()).filter(|index| is_open(*index)).find_map(|index| {
        let text = words[index].known_prefix();
        let next = words.get(index + 1).map_or("", Word::known_prefix);
        let acts = hazards.is_some_and(|hazards| hazards.has(text)) || is_code(name, text, next);
        acts.then(|| format!("{text} of {name} may run or write something"))
    })
}

/// True if a command of `gh` runs an extension, or defines a command or a program that it runs later.
fn sets_up_commands(words: &[Word]) -> bool {
    let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or("");
    match text(1) {
        "alias" => text(2) != "list",
        "config" => !matches!(text(2), "get" | "list"),
        "ext" | "extension" | "extensions" => !matches!(text(2), "list" | "search"),
        _ => false,
    }
}

impl Hazards {
    fn has(&self, text: &str) -> bool {
        let Some(behind) = text.strip_prefix('-') else { return false };
        let name = behind.strip_prefix('-').unwrap_or(behind).split('=').next().unwrap_or("");
        let name = name.strip_prefix("no-").unwrap_or(name);
        let is_named = is_listed(self.names, name)
            || (name.len() >= if text.starts_with("--") { 1 } else { 3 }
                && self.names.split(' ').any(|listed| listed.starts_with(name)));
        let bundle = behind.find(|letter| self.valued.contains(letter)).map_or(behind, |at| &behind[..at]);
        is_named || (!text.starts_with("--") && bundle.contains(|letter| self.letters.contains(letter)))
    }
}

/// True if a word of a program is text in its own language that runs or writes something.
fn is_code(program: &str, text: &str, next: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    match program {
        "sqlite3" => {
            let tells =
                ".databases .dump .headers .help .indexes .mode .nullvalue .schema .show .tables .width";
            let command = lower.split_whitespace().next().unwrap_or("");
            (command.starts_with('.') && !is_listed(tells, command))
                || has(&[
                    "\n.",
                    "attach",
                    "edit(",
                    "into '",
                    "into \"",
                    "load_extension",
                    "readfile",
                    "writefile",
                ])
                || matches!(lower.trim_start_matches('-'), "a" | "cmd" | "init")
        }
        "psql" => has(&["\\!", "\\cd", "\\copy", "\\e", "\\g", "\\i", "\\o", "\\s", "\\w", "program"]),
        "mysql" | "mariadb" => has(&["\\!", "system", "source", "outfile", "--tee", "--pager", "load_file"]),
        "ip" => lower == "exec",
        "latex" | "lualatex" | "pdflatex" | "pdftex" | "tex" | "xelatex" => has(&["\\", "|"]),
        "pytest" | "py.test" => {
            let attached = text.strip_prefix("-p").filter(|plugin| !plugin.is_empty());
            let plugin = attached.or((text == "-p").then_some(next));
            plugin.is_some_and(|plugin| !plugin.starts_with("no:"))
        }
        _ => false,
    }
}

/// True if a program reads further code from its input, because its words give it none.
pub(super) fn reads_code_from_input(arguments: Arguments<'_>) -> bool {
    let operands =
        arguments.words.iter().skip(1).filter(|word| !word.known_prefix().starts_with('-')).count();
    let has = |names: &[&str]| {
        arguments
            .words
            .iter()
            .skip(1)
            .any(|word| names.iter().any(|name| word.known_prefix().starts_with(name)))
    };
    match arguments.name() {
        "sqlite3" => operands < 2 && !has(&["-version", "--version", "-help", "--help"]),
        "psql" => !has(&["-c", "--command", "-l", "--list", "-V", "--version", "-?", "--help"]),
        "mysql" | "mariadb" => !has(&["-e", "--execute", "-V", "--version", "-?", "--help"]),
        _ => false,
    }
}
