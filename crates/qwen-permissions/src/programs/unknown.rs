//! Unknown programs: a rule that names one covers its arguments, except for a few options that commonly run a
//! program or write a file.

use super::{Arguments, Refusal, Use};
use crate::shell::Word;
use crate::shell::options::is_listed;

/// Options that run or write, without their dashes.
const RUN_OR_WRITE: &str = "browser checkpoint-action command compress-program editor eval exec exec-batch exec-path execdir \
 ext-diff fprint fprint0 fprintf fls hostname-bin info-script init-command init-file ld-preload ok okdir \
 open-files-in-pager outfile output output-document output-file pager pre preload rcfile receive-pack \
 rmt-command rsh rsh-command rsync-path script-shell shell to-command upload-pack use-askpass \
 use-compress-program";

/// Interpreters: a rule that names one permits running code.
const INTERPRETERS: &str =
    "bash bun dash deno lua node nodejs perl php python python2 python3 ruby sh tsx zsh";

/// Programs that run the tasks of a project and write where their arguments direct them. A rule for one
/// permits that.
const BUILDERS: &str = "bunx cargo clang cmake docker g++ gcc go gradle just kubectl make meson mvn ninja npm npx pnpm podman \
 poetry rustc tsc uv uvx yarn";

/// Options by which even those run something that is not the project's: another shell, other tools, other settings.
const RUN_OTHERS: &str = "eval exec init-script node-options script-shell toolexec vettool";

pub(super) fn examine(arguments: Arguments<'_>) -> Result<Use, Refusal> {
    let name = arguments.name();
    if is_interpreter(name) {
        return Ok(Use::default());
    }
    let builds = is_listed(BUILDERS, name);
    let mut for_the_task = false;
    for (index, word) in arguments.words.iter().enumerate().skip(1) {
        // The program might also disclose a secret that comes from a file.
        if matches!(word, Word::Dynamic(dynamic) if dynamic.glob.is_none()) {
            return Err(format!("an argument of {name} is only known when it runs"));
        }
        let text = word.known_start();
        let option = text.trim_start_matches('-').split('=').next().unwrap_or("");
        // The words after `--` belong to the task that a builder runs.
        for_the_task |= text == "--" && builds;
        let hazards = if builds { RUN_OTHERS } else { RUN_OR_WRITE };
        // Many programs take a unique beginning for the whole name.
        let is_shortened = text.starts_with("--")
            && option.len() >= 3
            && hazards.split(' ').any(|hazard| !hazard.contains('-') && hazard.starts_with(option));
        let acts = text.starts_with('-') && (is_listed(hazards, option) || is_shortened);
        let next = arguments.words.get(index + 1);
        let writes = !builds && !is_inert(name) && names_an_output(text, next);
        let other_settings = name == "cargo" && text.starts_with("--config");
        if (acts || writes || other_settings) && !for_the_task && !arguments.is_named(index) {
            return Err(format!("{text} may run or write something"));
        }
    }
    Ok(Use::default())
}

/// Values of `-o` that choose a format.
const FORMATS: &str = "custom-columns csv go-template html json jsonl jsonpath long markdown md name ndjson none plain pretty raw \
 short table text toml tsv wide xml yaml yml";

/// True for `-o FILE`, by which most programs name the file that they write.
fn names_an_output(text: &str, next: Option<&Word>) -> bool {
    let value = match text {
        "-o" | "-O" => next.map(Word::known_start),
        _ => text.strip_prefix("-o=").or_else(|| text.strip_prefix("-O=")),
    };
    value.is_some_and(|value| {
        let format = value.split('=').next().unwrap_or(value);
        !value.is_empty() && !value.starts_with('-') && !is_listed(FORMATS, format)
    })
}

/// Programs that run another one, or a text, from among their words, in ways of their own.
const LAUNCHERS: &str = "at awk batch bundle bwrap chrt conda crontab dbus-run-session direnv entr expect fakeroot firejail flock \
 gawk gdb ltrace mise nc nix nix-shell nsenter numactl parallel pipx prlimit proot rlwrap runuser screen \
 script setpriv socat ssh strace su systemd-run taskset tmux unbuffer unshare valgrind vim xvfb-run";

/// Programs that run none of their words; nothing else is known about them.
const INERT: &str = "apk apropos apt apt-cache apt-get brew cd chgrp chmod chown code cp dd dnf dpkg dpkg-query gem gh glab gunzip \
 gzip info install kill killall ln mkdir mount mv open pacman pgrep pip pip3 pkill ps rm rmdir rpm service shred systemctl \
 tee tldr touch truncate umount unset unzip whatis whereis xdg-open yum zcat";

/// Whether it is known of a program, one way or the other, what it does with its words.
pub(super) fn is_inert(name: &str) -> bool {
    is_listed(INERT, name)
}

/// Whether a program may run what stands among its words, so a denied name among them asks.
pub(crate) fn runs_its_arguments(name: &str) -> bool {
    let is_loader = name == "ld.so" || name.starts_with("ld-linux") || name.starts_with("ld-musl");
    is_interpreter(name) || is_loader || is_listed(BUILDERS, name) || is_listed(LAUNCHERS, name)
}

/// Whether a program runs code that it is given.
fn is_interpreter(name: &str) -> bool {
    is_listed(INTERPRETERS, name)
        || name.strip_prefix("python").is_some_and(|rest| rest.starts_with(['2', '3']))
}
