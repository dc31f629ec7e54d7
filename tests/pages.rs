//! The manual pages, held to what the program really has, and to what the tools for pages say.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::Command;

use clap::CommandFactory;
use lanelect::cli::Cli;
use lanelect::config::{ConfigSource, Overrides, SETTINGS};

#[path = "../examples/generate/man.rs"]
mod man;

const README: &str = include_str!("../README.md");

/// The words in `text` that are set as code in Markdown.
fn code_words(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The part of a page below the heading `name`.
fn section(page: &str, name: &str) -> String {
    let heading = format!("\n.SH {name}\n");
    let below = page.split(&heading).nth(1).unwrap();
    below.split("\n.SH ").next().unwrap().replace("\\-", "-")
}

#[test]
fn every_command_is_explained_with_its_exit_status() {
    let page = man::lanelect(&Cli::command());
    let commands = section(&page, "COMMANDS");
    for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        let explained = commands.split(".SS lanelect ").find(|part| part.starts_with(name));
        assert!(explained.is_some_and(|text| text.contains("Exit status")), "{name}");
    }
}

#[test]
fn every_key_is_explained() {
    let page = man::lanelect_toml();
    let keys = section(&page, "KEYS");
    for setting in SETTINGS {
        let heading = format!("\\fB{}\\fR = \\fI", setting.name);
        let defaulted = |part: &str| part.starts_with(&heading) && part.contains("\n.br\n");
        assert!(keys.split(".TP\n").any(defaulted), "{}", setting.name);
    }
}

#[test]
fn the_hooks_environment_is_the_readme_s() {
    let page = man::lanelect(&Cli::command());
    let hooks = section(&page, "HOOKS");
    let rows: Vec<_> = README.lines().filter(|line| line.starts_with("| `LANELECT_")).collect();
    assert!(rows.len() > 5);
    for word in rows.into_iter().flat_map(code_words) {
        let bold = hooks.lines().any(|line| {
            line.starts_with(".B") && line.split([' ', '"', ',', '.']).any(|part| part == word)
        });
        assert!(bold, "{word} is not in the page");
    }
}

/// A configuration in which every key that takes a restart to change differs from the default.
const DIFFERENT: &str = r#"
group = "x"
node_id = "another"
interface = "x"
multicast = "239.1.1.1:1"
mode = "quorum"
voters = ["another"]
hook_socket = "/y"
key_file = "/x"
state_dir = "/x"
socket = "/x"
socket_group = "x"
peers = ["10.0.0.9"]
priority = 7
hook = "true"
heartbeat_interval = "2s"
"#;

#[test]
fn the_keys_that_take_a_restart_are_named() {
    let home = tempfile::tempdir().unwrap();
    let load = |text: &str| {
        let file = home.path().join("config.toml");
        fs::write(&file, text).unwrap();
        ConfigSource { file: Some(file), overrides: Overrides::default() }.load().unwrap()
    };
    let restart = load("node_id = \"a\"").changes_needing_restart(&load(DIFFERENT));
    let page = man::lanelect_toml();
    let reloading = section(&page, "RELOADING");
    for setting in SETTINGS {
        let named = reloading.lines().any(|line| {
            line.strip_prefix(".BR ")
                .is_some_and(|words| words.split(' ').next() == Some(setting.name))
        });
        assert_eq!(named, restart.contains(&setting.name), "{}", setting.name);
    }
}

#[test]
fn the_pages_are_pages() {
    let home = tempfile::tempdir().unwrap();
    let pages = [
        ("lanelect.1", man::lanelect(&Cli::command())),
        ("lanelect-http.1", man::lanelect_http()),
        ("lanelect.toml.5", man::lanelect_toml()),
    ];
    for (name, page) in pages {
        let blanks = ["@VERSION@", "@COMMANDS@", "@KEYS@", "@EXAMPLE@"];
        assert!(!blanks.iter().any(|blank| page.contains(blank)), "{name}");
        let file = home.path().join(name);
        fs::write(&file, page).unwrap();
        for checker in [&["mandoc", "-Tlint", "-Wwarning"][..], &["groff", "-ww", "-man", "-z"]] {
            let mut command = Command::new(checker[0]);
            let Ok(output) = command.args(&checker[1..]).arg(&file).output() else {
                eprintln!("skipped: there is no {} here", checker[0]);
                continue;
            };
            let said = [output.stdout, output.stderr].concat();
            assert_eq!(String::from_utf8_lossy(&said), "", "{checker:?}");
            assert!(output.status.success(), "{checker:?}");
        }
    }
}
