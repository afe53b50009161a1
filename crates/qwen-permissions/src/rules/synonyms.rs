//! Spellings of the same option or subcommand, so that a deny rule matches what a command does.

/// Options by program, or by `program subcommand`. Each entry is a spelling and what it means: `f=force`, and
/// `D=delete+force` for a letter that means two options. Long options mean themselves unless they are
/// listed.
const OPTIONS: &[(&str, &str)] = &[
    (
        "apt",
        "y=yes assume-yes=yes q=quiet f=fix-broken d=download-only s=dry-run simulate=dry-run just-print=dry-run",
    ),
    (
        "apt-get",
        "y=yes assume-yes=yes q=quiet f=fix-broken d=download-only s=dry-run simulate=dry-run just-print=dry-run",
    ),
    ("cargo", "p=package j=jobs F=features q=quiet v=verbose r=release"),
    ("chgrp", "R=recursive v=verbose c=changes f=quiet silent=quiet h=no-dereference"),
    ("chmod", "R=recursive v=verbose c=changes f=quiet silent=quiet"),
    ("chown", "R=recursive v=verbose c=changes f=quiet silent=quiet h=no-dereference"),
    (
        "cp",
        "r=recursive R=recursive a=recursive+archive archive=recursive+archive f=force l=link s=symbolic-link n=no-clobber \
      t=target-directory u=update v=verbose x=one-file-system T=no-target-directory i=interactive",
    ),
    (
        "curl",
        "o=output O=remote-name X=request d=data T=upload-file F=form k=insecure L=location H=header u=user s=silent \
      K=config x=proxy b=cookie c=cookie-jar I=head i=include f=fail A=user-agent e=referer G=get v=verbose r=range",
    ),
    ("docker build", "t=tag f=file q=quiet"),
    ("docker exec", "d=detach e=env i=interactive t=tty u=user w=workdir"),
    ("docker rm", "f=force v=volumes l=link"),
    ("docker rmi", "f=force"),
    (
        "docker run",
        "v=volume d=detach e=env p=publish P=publish-all u=user w=workdir i=interactive t=tty m=memory h=hostname l=label",
    ),
    ("git add", "A=all f=force n=dry-run p=patch u=update i=interactive v=verbose e=edit N=intent-to-add"),
    (
        "git branch",
        "d=delete D=delete+force m=move M=move+force c=copy C=copy+force f=force a=all r=remotes v=verbose \
      u=set-upstream-to t=track",
    ),
    ("git checkout", "f=force d=detach q=quiet m=merge p=patch t=track"),
    ("git clean", "f=force n=dry-run i=interactive q=quiet e=exclude"),
    (
        "git clone",
        "b=branch o=origin c=config l=local s=shared u=upload-pack n=no-checkout j=jobs q=quiet v=verbose",
    ),
    (
        "git commit",
        "a=all m=message n=no-verify F=file s=signoff S=gpg-sign C=reuse-message e=edit p=patch v=verbose i=include o=only",
    ),
    ("git config", "f=file l=list e=edit z=null"),
    (
        "git fetch",
        "a=append f=force p=prune P=prune-tags t=tags n=no-tags u=update-head-ok k=keep q=quiet v=verbose j=jobs",
    ),
    ("git merge", "s=strategy X=strategy-option m=message n=no-stat e=edit F=file S=gpg-sign"),
    ("git mv", "f=force n=dry-run v=verbose"),
    (
        "git pull",
        "a=append f=force p=prune t=tags r=rebase s=strategy X=strategy-option q=quiet v=verbose n=no-stat",
    ),
    ("git push", "f=force d=delete u=set-upstream n=dry-run q=quiet v=verbose mirror=mirror+force"),
    (
        "git rebase",
        "i=interactive x=exec f=force-rebase no-ff=force-rebase m=merge s=strategy X=strategy-option r=rebase-merges",
    ),
    ("git reset", "q=quiet p=patch N=intent-to-add"),
    ("git restore", "s=source p=patch W=worktree S=staged q=quiet m=merge"),
    ("git rm", "f=force n=dry-run q=quiet"),
    ("git stash", "a=all u=include-untracked k=keep-index p=patch q=quiet m=message S=staged"),
    (
        "git switch",
        "f=force discard-changes=force c=create C=create+force force-create=create+force d=detach q=quiet m=merge t=track",
    ),
    ("git tag", "d=delete f=force a=annotate s=sign m=message l=list v=verify u=local-user F=file"),
    ("git worktree", "f=force d=detach"),
    (
        "grep",
        "r=recursive R=recursive+dereference-recursive dereference-recursive=recursive+dereference-recursive f=file \
      i=ignore-case v=invert-match e=regexp l=files-with-matches",
    ),
    ("gzip", "k=keep d=decompress uncompress=decompress c=stdout to-stdout=stdout f=force r=recursive"),
    ("install", "m=mode o=owner g=group d=directory t=target-directory s=strip"),
    (
        "kubectl",
        "n=namespace f=filename o=output A=all-namespaces l=selector w=watch c=container R=recursive",
    ),
    ("ln", "s=symbolic f=force r=relative t=target-directory n=no-dereference"),
    (
        "make",
        "B=always-make C=directory f=file makefile=file j=jobs k=keep-going n=dry-run just-print=dry-run recon=dry-run E=eval \
      I=include-dir i=ignore-errors s=silent quiet=silent t=touch",
    ),
    ("mkdir", "p=parents m=mode v=verbose"),
    ("mv", "f=force n=no-clobber u=update t=target-directory v=verbose i=interactive"),
    ("npm", "g=global D=save-dev S=save f=force w=workspace y=yes"),
    ("patch", "i=input p=strip R=reverse o=output d=directory"),
    ("pip", "U=upgrade r=requirement e=editable t=target q=quiet i=index-url y=yes"),
    ("pip3", "U=upgrade r=requirement e=editable t=target q=quiet i=index-url y=yes"),
    (
        "podman run",
        "v=volume d=detach e=env p=publish P=publish-all u=user w=workdir i=interactive t=tty m=memory h=hostname l=label",
    ),
    ("rm", "r=recursive R=recursive f=force d=dir v=verbose"),
    ("rmdir", "p=parents v=verbose"),
    (
        "rsync",
        "a=recursive+archive archive=recursive+archive r=recursive e=rsh v=verbose z=compress n=dry-run u=update l=links \
      b=backup c=checksum f=filter R=relative",
    ),
    (
        "sed",
        "i=in-place e=expression n=quiet silent=quiet r=regexp-extended E=regexp-extended f=file s=separate z=null-data",
    ),
    ("shred", "u=remove z=zero f=force n=iterations v=verbose"),
    ("sort", "o=output u=unique r=reverse n=numeric-sort k=key T=temporary-directory"),
    ("systemctl", "f=force n=lines H=host M=machine t=type a=all"),
    (
        "tar",
        "c=create x=extract get=extract t=list r=append u=update A=concatenate catenate=concatenate d=compare diff=compare f=file \
      z=gzip j=bzip2 J=xz I=use-compress-program C=directory P=absolute-names T=files-from O=to-stdout F=info-script",
    ),
    ("tee", "a=append i=ignore-interrupts"),
    ("touch", "c=no-create r=reference d=date"),
    ("truncate", "s=size c=no-create r=reference"),
    (
        "wget",
        "O=output-document P=directory-prefix r=recursive i=input-file q=quiet c=continue m=mirror N=timestamping U=user-agent",
    ),
    ("zip", "r=recurse-paths m=move d=delete u=update x=exclude q=quiet e=encrypt"),
];

/// Subcommands that are the same, by program.
const SUBCOMMANDS: &[(&str, &str)] = &[
    ("brew", "uninstall remove rm"),
    ("cargo", "build b"),
    ("cargo", "check c"),
    ("cargo", "doc d"),
    ("cargo", "remove rm"),
    ("cargo", "run r"),
    ("cargo", "test t"),
    ("git", "add stage"),
    ("npm", "exec x"),
    ("npm", "ci clean-install ic install-clean isntall-clean"),
    ("npm", "ci cit clean-install-test install-ci-test sit"),
    ("npm", "install add i in ins inst insta instal install-test isnt isnta isntal isntall it"),
    ("npm", "run run-script rum urn"),
    ("npm", "test cit clean-install-test install-ci-test install-test it sit t tst"),
    ("npm", "uninstall r remove rm un unlink"),
    ("pnpm", "install i"),
    ("pnpm", "remove rm un uninstall"),
];

/// What the options of one program mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meanings {
    /// `None` if nothing is known about the program.
    entries: Option<&'static str>,
}

impl Meanings {
    /// The meanings for a program, or for one of its subcommands.
    pub(crate) fn collect(program: &str, subcommand: Option<&str>) -> Self {
        let find = |key: &str| OPTIONS.iter().find(|(listed, _)| *listed == key).map(|(_, entries)| *entries);
        let specific = subcommand.and_then(|subcommand| find(&format!("{program} {subcommand}")));
        Self { entries: specific.or_else(|| find(program)) }
    }

    /// True if letters and names of this program are known to mean the same or not.
    pub(crate) fn are_known(self) -> bool {
        self.entries.is_some()
    }

    /// What a letter or a name means: itself, if it is not listed. A shortened name means all that it may
    /// stand for.
    pub(crate) fn of_option(self, spelling: &str) -> Vec<&str> {
        let entries = || {
            self.entries.into_iter().flat_map(str::split_whitespace).filter_map(|entry| entry.split_once('='))
        };
        if let Some((_, meaning)) = entries().find(|(listed, _)| *listed == spelling) {
            return meaning.split('+').collect();
        }
        let is_short_for = |listed: &str| spelling.len() > 1 && listed.starts_with(spelling);
        let shortened = entries().filter(|(listed, _)| is_short_for(listed));
        std::iter::once(spelling).chain(shortened.flat_map(|(_, meaning)| meaning.split('+'))).collect()
    }
}

/// Programs that are the same under other names.
const PROGRAMS: &[&str] = &[
    "awk gawk mawk nawk",
    "cc gcc",
    "make gmake",
    "nc ncat netcat",
    "node nodejs",
    "pip pip2 pip3",
    "python python2 python3",
    "sed gsed",
    "tar bsdtar gtar",
    "vi vim",
];

/// True if two names mean the same program: `pip3.11` is `pip`.
pub(crate) fn is_same_program(one: &str, other: &str) -> bool {
    let plain = |name: &str| {
        name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.').to_owned()
    };
    let versioned = |name: &str| is_versioned(&plain(name));
    one == other
        || PROGRAMS.iter().any(|names| {
            let has = |name: &str| names.split(' ').any(|listed| listed == name);
            has(one) && has(other)
        })
        || (versioned(one) && plain(one) == plain(other))
}

/// Programs whose names carry versions.
fn is_versioned(name: &str) -> bool {
    matches!(name, "clang" | "gcc" | "lua" | "node" | "perl" | "php" | "pip" | "python" | "ruby")
}

/// Programs that take a unique beginning for a subcommand.
const ABBREVIATING: &[&str] = &["npm", "ip"];

/// True if two words are the same operand of a program: `chmod 0777` and `chmod a=rwx` are `chmod 777`.
pub(crate) fn is_same_operand(program: &str, one: &str, other: &str) -> bool {
    program == "chmod" && file_mode(one).is_some_and(|mode| file_mode(other) == Some(mode))
}

/// The permissions that an operand of `chmod` sets, or adds for everybody.
fn file_mode(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| (b'0'..=b'7').contains(&byte)) {
        return u32::from_str_radix(text, 8).ok();
    }
    let mut mode = 0;
    for clause in text.split(',') {
        let at = clause.find(['=', '+'])?;
        let (who, what) = clause.split_at(at);
        let bits = what[1..].chars().try_fold(0, |bits, letter| match letter {
            'r' => Some(bits | 4),
            'w' => Some(bits | 2),
            'x' | 'X' => Some(bits | 1),
            _ => None,
        })?;
        let who = if who.is_empty() || who.contains('a') { "ugo" } else { who };
        for letter in who.chars() {
            mode |= bits
                << match letter {
                    'u' => 6,
                    'g' => 3,
                    'o' => 0,
                    _ => return None,
                };
        }
    }
    Some(mode)
}

/// True if two names mean the same subcommand of a program.
pub(crate) fn is_same_subcommand(program: &str, one: &str, other: &str) -> bool {
    let groups = || SUBCOMMANDS.iter().filter(|(listed, _)| *listed == program);
    let is_whole = || groups().any(|(_, names)| names.split(' ').any(|name| name == other));
    let is_beginning =
        ABBREVIATING.contains(&program) && other.len() > 1 && one.starts_with(other) && !is_whole();
    one == other
        || is_beginning
        || groups().any(|(_, names)| {
            let has = |name: &str| names.split(' ').any(|listed| listed == name);
            has(one) && has(other)
        })
}
