//! The page for those who come from keepalived, held to its example files, and these to what both
//! programs read. `tests/lan` runs the examples.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/pages.rs"]
#[expect(dead_code, reason = "the tests of other documents need more of it")]
mod pages;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lanelect::config::{Config, SETTINGS};

use pages::{all_blocks, check_config};

const PAGE: &str = include_str!("../docs/from-keepalived.md");
const OTHERS: &str = include_str!("../docs/from-others.md");
const EXAMPLES: &str = "examples/keepalived";

/// Examples that the page describes by the other host's.
const DESCRIBED: [&str; 2] = ["crossing/web1/blue.toml", "crossing/web1/green.toml"];

/// Words of keepalived's files that are values, not keywords: names, addresses and their devices.
const VALUES: [&str; 1] = ["proxy"];

/// The files below the examples, by their path in there.
fn examples() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(EXAMPLES);
    let mut directories = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }
    found
}

#[test]
fn the_page_shows_each_example_as_it_is() {
    let shown: BTreeSet<_> = all_blocks(PAGE).map(|(_, name, content)| (name, content)).collect();
    let examples = examples();
    assert_eq!(examples.len(), 9);
    for (name, content) in &examples {
        let is_shown = shown.contains(&(name.as_str(), content.as_str()));
        assert!(is_shown || DESCRIBED.contains(&name.as_str()), "{name} is not on the page");
    }
}

#[test]
fn the_second_host_of_the_crossing_pair_has_the_other_priorities() {
    let examples = examples();
    let config = |name: &str| -> toml::Table {
        examples.iter().find(|(path, _)| path == name).unwrap().1.parse().unwrap()
    };
    for (group, other) in [("blue", "green"), ("green", "blue")] {
        let first = config(&format!("crossing/web0/{group}.toml"));
        let mut second = config(&format!("crossing/web1/{group}.toml"));
        let opposite = config(&format!("crossing/web0/{other}.toml"))["priority"].clone();
        assert_ne!(first["priority"], opposite);
        assert_eq!(second.insert("priority".into(), first["priority"].clone()), Some(opposite));
        assert_eq!(first, second, "nothing else differs");
    }
}

#[test]
fn the_configurations_of_the_examples_and_the_page_are_valid() {
    let examples = examples();
    let files = examples.iter().filter(|(name, _)| name.ends_with(".toml"));
    let shown = all_blocks(PAGE).filter(|(language, ..)| *language == "toml");
    let texts: Vec<&str> =
        files.map(|(_, text)| text.as_str()).chain(shown.map(|(_, _, text)| text)).collect();
    assert!(texts.len() > examples.len(), "{}", texts.len());
    for text in texts {
        assert!(check_config(text, &[]).status.success(), "{text}");
    }
}

#[test]
fn the_scripts_of_the_pages_are_valid() {
    let shown = [PAGE, OTHERS].into_iter().flat_map(all_blocks);
    let scripts: Vec<_> = shown
        .filter(|(language, _, text)| *language == "sh" && text.trim_start().starts_with("#!"))
        .collect();
    assert_eq!(scripts.len(), 3);
    for (_, _, script) in scripts {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-n", "-c", script]).stdin(Stdio::null());
        assert!(shell.status().unwrap().success(), "{script}");
    }
}

/// The tables of keywords.
fn tables() -> &'static str {
    PAGE.split_once("\n## Each keyword\n").unwrap().1
}

#[test]
fn the_tables_have_every_keyword_of_the_examples() {
    let first_cells =
        tables().lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let code = first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let known: BTreeSet<_> = code.flat_map(str::split_whitespace).collect();
    let mut seen = 0;
    for (name, text) in examples().iter().filter(|(name, _)| name.ends_with(".conf")) {
        for line in text.lines() {
            let words = line.split_whitespace().filter(|word| !word.starts_with('@'));
            let keyword = words.take(1).find(|word| word.starts_with(char::is_alphabetic));
            let Some(keyword) = keyword.filter(|word| !VALUES.contains(word)) else { continue };
            seen += 1;
            // Blocks of definitions have headings of their own.
            let is_known = known.contains(keyword) || PAGE.contains(&format!("\n### {keyword}"));
            assert!(is_known, "{name}: {keyword} is in no table");
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn the_tables_name_no_key_that_does_not_exist() {
    let keys: BTreeSet<_> = SETTINGS.iter().map(|setting| setting.name).collect();
    let mut found = 0;
    let rows = tables().lines().filter(|line| line.starts_with("| "));
    for code in rows.flat_map(|row| row.split('`').skip(1).step_by(2)) {
        let Some((key, _)) = code.split_once(" = ") else { continue };
        found += 1;
        assert!(keys.contains(key), "{key} is no key");
    }
    assert!(found > 5, "{found}");
}

#[test]
fn the_times_of_failovers_are_those_of_the_defaults() {
    let params = Config::from_toml("").unwrap().election;
    let last = params.leader_alive_threshold;
    let first = last - params.heartbeat_interval;
    let range = format!("{:.2} to {:.2} s", first.as_secs_f64(), last.as_secs_f64());
    assert!(PAGE.contains(&range), "{range}");
    let interval = format!("`heartbeat_interval`, {} ms by", params.heartbeat_interval.as_millis());
    assert!(PAGE.contains(&interval), "{interval}");
}
