//! `qwen man`: the manual page, generated from the same definitions as `--help`.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};

use crate::cli::Cli;

/// The page in roff.
pub fn page() -> String {
    let mut command = Cli::command();
    command.build();
    let mut page = String::new();
    // Writing to a `String` cannot fail.
    let _ = write!(
        page,
        ".TH QWEN 1 \"\" \"qwen {}\" \"User Commands\"\n.SH NAME\nqwen \\- an embeddable coding agent\n.SH SYNOPSIS\n\
         .B qwen\n[\\fIOPTIONS\\fR] [\\fIPROMPT\\fR]...\n.br\n.B qwen\n\\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n\
         .SH DESCRIPTION\nRuns a prompt against a language model that works on the files of the current directory with tools. The \
         final message goes to standard output, everything else to standard error.\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut headings: Vec<Option<&str>> = Vec::new();
    for argument in visible(&command) {
        if !headings.contains(&argument.get_help_heading()) {
            headings.push(argument.get_help_heading());
        }
    }
    for heading in headings {
        let _ = writeln!(page, ".SH {}", escaped(&heading.unwrap_or("Options").to_uppercase()));
        for argument in visible(&command).filter(|argument| argument.get_help_heading() == heading) {
            option(&mut page, argument);
        }
    }
    page.push_str(".SH COMMANDS\n");
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(page, ".TP\n\\fBqwen {}\\fR\n{}", escaped(subcommand.get_name()), escaped(&about));
    }
    page.push_str(
        ".SH ENVIRONMENT\n.TP\n\\fBOPENAI_API_KEY\\fR, \\fBOPENAI_BASE_URL\\fR, \\fBOPENAI_MODEL\\fR\nThe key, the address and the \
         model of an OpenAI-compatible server.\n.TP\n\\fBDASHSCOPE_API_KEY\\fR, \\fBANTHROPIC_API_KEY\\fR\nThe keys of these \
         providers.\n.TP\n\\fBQWEN_HOME\\fR\nWhere settings and sessions are kept; ~/.qwen by default.\n\
         .SH EXIT STATUS\n0 done; 1 other errors; 2 usage; 41 authentication; 42 input; 44 sandbox; 52 settings; 53 turn limit; \
         54 tools; 55 budget; 130 cancelled; 143 terminated.\n",
    );
    page
}

fn visible(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !argument.is_hide_set())
}

fn option(page: &mut String, argument: &Arg) {
    let mut names = Vec::new();
    names.extend(argument.get_short().map(|short| format!("\\fB\\-{short}\\fR")));
    names.extend(argument.get_long().map(|long| format!("\\fB\\-\\-{}\\fR", escaped(long))));
    let takes_value = argument.get_action().takes_values();
    let value = argument.get_value_names().filter(|_| takes_value).and_then(|names| names.first());
    let value = value.map(|value| format!(" \\fI{}\\fR", escaped(value))).unwrap_or_default();
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let names = if names.is_empty() { format!("[\\fI{}\\fR]", argument.get_id()) } else { names.join(", ") };
    // Writing to a `String` cannot fail.
    let _ = writeln!(page, ".TP\n{names}{value}\n{}", escaped(&help));
}

/// Escapes a text so that roff shows it literally.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('-', "\\-");
    text.lines()
        .map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() })
        .collect::<Vec<_>>()
        .join("\n")
}
