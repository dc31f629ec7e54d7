//! The manual pages. `docs/man` holds what people wrote; the commands, the keys and the example
//! are filled in from where the program has them.

use clap::{Arg, Command};
use lanelect::config::{Kind, SETTINGS, Setting};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const LANELECT: &str = include_str!("../../docs/man/lanelect.1.in");
const LANELECT_HTTP: &str = include_str!("../../docs/man/lanelect-http.1.in");
const LANELECT_TOML: &str = include_str!("../../docs/man/lanelect.toml.5.in");
const EXAMPLE: &str = include_str!("../../systemd/example.toml");

/// lanelect(1).
pub fn lanelect(cli: &Command) -> String {
    // The hidden ones are not for people.
    let commands = cli.get_subcommands().filter(|command| !command.is_hide_set());
    let commands: String = commands.map(command).collect();
    LANELECT.replace("@VERSION@", VERSION).replace("@COMMANDS@", commands.trim_end())
}

/// lanelect-http(1).
pub fn lanelect_http() -> String {
    LANELECT_HTTP.replace("@VERSION@", VERSION)
}

/// lanelect.toml(5).
pub fn lanelect_toml() -> String {
    let keys: String = SETTINGS.iter().map(key).collect();
    LANELECT_TOML
        .replace("@VERSION@", VERSION)
        .replace("@KEYS@", keys.trim_end())
        .replace("@EXAMPLE@", text(EXAMPLE).trim_end())
}

fn command(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut section = format!(".SS lanelect {}\n{}.\n", text(command.get_name()), text(&about));
    section += &format!(".PP\n.B lanelect {}\n{}\n", text(command.get_name()), synopsis(command));
    section +=
        &command.get_arguments().filter(|arg| !is_key(arg)).map(argument).collect::<String>();
    section += &after.split_terminator("\n\n").map(paragraph).collect::<String>();
    section
}

/// Its options and arguments, in one line. Those of `run` that stand for config keys are one.
fn synopsis(command: &Command) -> String {
    let mut parts: Vec<String> = command
        .get_arguments()
        .filter(|arg| !is_key(arg))
        .map(|arg| {
            let shown = bare(arg);
            if arg.is_required_set() { shown } else { format!("[{shown}]") }
        })
        .collect();
    if command.get_arguments().any(is_key) {
        parts.push(format!("[\\fB{}\\fIKEY VALUE\\fR ...]", text("--")));
    }
    parts.join(" ")
}

/// An argument of one of the commands, as a paragraph with what it means.
fn argument(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let default: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    let default = match &default[..] {
        [] => String::new(),
        values => format!(" [default: {}]", values.join(" ")),
    };
    format!(".TP\n{}\n{}\n", bare(arg), meaning(&format!("{help}{default}")))
}

/// An argument as it is typed: `--group NAME`, `--wait[=DURATION]` or `-- COMMAND ...`.
fn bare(arg: &Arg) -> String {
    let bold = |typed: &str| format!("\\fB{}\\fR", text(typed));
    let flag = match arg.get_long() {
        Some(long) => Some(bold(&format!("--{long}"))),
        None => arg.is_last_set().then(|| bold("--")),
    };
    let value = takes_value(arg).then(|| value(arg));
    match (flag, value) {
        (Some(flag), Some(value)) if arg.is_require_equals_set() => format!("{flag}[={value}]"),
        (flag, value) => [flag, value].into_iter().flatten().collect::<Vec<_>>().join(" "),
    }
}

/// What an argument is given: one of a few words, or a word for what it may be.
fn value(arg: &Arg) -> String {
    let words = arg.get_possible_values();
    let words: Vec<_> = words.iter().map(|word| text(word.get_name())).collect();
    if !words.is_empty() {
        return format!("\\fB{}\\fR", words.join("\\fR|\\fB"));
    }
    let names = arg.get_value_names().unwrap_or_default();
    let many = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
    let more = if many { " ..." } else { "" };
    names.iter().map(|name| format!("\\fI{}\\fR{more}", text(name))).collect()
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// Whether a flag stands for a key of the file, which lanelect.toml(5) describes.
fn is_key(arg: &Arg) -> bool {
    arg.get_help_heading() == Some("Config keys")
}

/// One paragraph of a command's help: prose, its exit status, or examples.
fn paragraph(help: &str) -> String {
    let (first, rest) = help.split_once('\n').unwrap_or((help, ""));
    if first.starts_with("Example") {
        format!(".PP\n{}\n.PP\n.EX\n{}\n.EE\n", text(first), text(rest).trim_end())
    } else if let Some(status) = help.strip_prefix("Exit status: ") {
        format!(".PP\n.I Exit status:\n{}\n", text(status))
    } else {
        format!(".PP\n{}\n", text(help))
    }
}

fn key(setting: &Setting) -> String {
    let value = match setting.kind {
        Kind::Text => "TEXT",
        Kind::Duration => "DURATION",
        Kind::Path => "PATH",
        Kind::Integer => "NUMBER",
        Kind::Boolean => "BOOLEAN",
        Kind::Names => "NAMES",
    };
    format!(".TP\n\\fB{}\\fR = \\fI{value}\\fR\n{}\n", text(setting.name), meaning(setting.help))
}

/// A help text, with the default that it ends with as a sentence of its own.
fn meaning(help: &str) -> String {
    let (meaning, default) = match help.strip_suffix(']').and_then(|help| help.rsplit_once(" [")) {
        Some((meaning, default)) => (meaning, Some(default)),
        None => (help, None),
    };
    let mut sentences = format!("{}.", marked(meaning.trim_end_matches('.')));
    if let Some(default) = default {
        let (first, rest) = default.split_at(1);
        sentences += &format!("\n.br\n{}{}.", first.to_uppercase(), marked(rest));
    }
    sentences
}

/// Text in which what stands between backticks is bold.
fn marked(help: &str) -> String {
    let pieces = help.split('`').zip([false, true].into_iter().cycle());
    pieces
        .map(|(piece, code)| match code {
            true => format!("\\fB{}\\fR", text(piece)),
            false => text(piece),
        })
        .collect()
}

/// Text as it is, whatever roff would make of its characters.
fn text(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    escaped.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A line that is no request, though it may begin like one.
fn line(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_stands_as_it_is_typed() {
        let wait = Arg::new("wait").long("wait").value_name("TIME").num_args(0..=1);
        assert_eq!(bare(&wait.require_equals(true)), "\\fB\\-\\-wait\\fR[=\\fITIME\\fR]");
        let command = Arg::new("command").value_name("COMMAND").num_args(1..).last(true);
        assert_eq!(bare(&command), "\\fB\\-\\-\\fR \\fICOMMAND\\fR ...");
    }

    #[test]
    fn no_character_of_a_text_is_roff_s() {
        assert_eq!(text("a-b \\n\n.PP\n'x"), "a\\-b \\en\n\\&.PP\n\\&'x");
    }

    #[test]
    fn the_default_is_a_sentence_of_its_own() {
        assert_eq!(meaning("See `x` [default: none, a]"), "See \\fBx\\fR.\n.br\nDefault: none, a.");
        assert_eq!(meaning("A [0] list"), "A [0] list.");
    }
}
