//! Config files, as the real binary sees them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use lanelect::config::{ConfigSource, Overrides, SETTINGS};

/// Exit status, stdout and stderr of `lanelect check-config FILE`.
fn check_config(file: &Path) -> (Option<i32>, String, String) {
    let output =
        Command::cargo_bin("lanelect").unwrap().arg("check-config").arg(file).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("test.toml");
    fs::write(&file, text).unwrap();
    (dir, file)
}

/// A file must be refused with this line and key in front of a message that holds the words.
fn assert_refused(text: &str, line: usize, key: &str, words: &str) {
    let (_dir, file) = written(text);
    let (status, stdout, stderr) = check_config(&file);
    assert_eq!((status, stdout.as_str()), (Some(2), ""), "{text}: {stderr}");
    let place = format!("{}:{line}: {key}: ", file.display());
    let told = stderr.lines().find_map(|told| told.strip_prefix(&place));
    assert!(told.is_some_and(|told| told.contains(words)), "{text}: want {place}{words}: {stderr}");
}

#[test]
fn every_shipped_config_is_valid() {
    let shipped: Vec<_> = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/systemd"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    assert!(!shipped.is_empty());
    for file in shipped {
        let (status, stdout, stderr) = check_config(&file);
        assert_eq!(status, Some(0), "{}: {stderr}", file.display());
        assert!(stdout.contains("leader_alive_threshold = \""), "defaults are filled in: {stdout}");
    }
}

/// A commented key shows its default, as far as it has one that is the same on every host.
#[test]
fn the_example_shows_the_defaults() {
    let effective = |text: &str| -> toml::Table {
        let (_dir, file) = written(text);
        check_config(&file).1.parse().unwrap()
    };
    let defaults = effective("");
    let example = include_str!("../systemd/example.toml").lines();
    let shown = example.filter_map(|line| {
        let line = line.strip_prefix('#')?;
        let (key, _) = line.split_once(" = ")?;
        // The hostname, and what follows from the group's name.
        (!matches!(key, "node_id" | "socket") && defaults.contains_key(key)).then_some((key, line))
    });
    let compared =
        shown.map(|(key, line)| assert_eq!(effective(line)[key], defaults[key], "{key}"));
    assert!(compared.count() >= 15);
}

/// The commented keys of the example are those that exist, with values that are valid.
#[test]
fn the_example_shows_every_key() {
    let example = include_str!("../systemd/example.toml");
    for setting in SETTINGS.iter().filter(|setting| setting.name != "mode") {
        let shown = example.lines().find_map(|line| {
            let line = line.strip_prefix('#').unwrap_or(line);
            line.starts_with(&format!("{} = ", setting.name)).then_some(line)
        });
        let line = shown.unwrap_or_else(|| panic!("{} is not in the example", setting.name));
        let needed = match setting.name {
            "key_mode" => "key_file = \"/etc/lanelect/example.key\"\n",
            "voters" => "mode = \"quorum\"\n",
            "demote_grace" => "mode = \"quorum\"\nvoters = \"a\"\n",
            "fence" => "mode = \"quorum\"\nvoters = \"a\"\nhook = \"/bin/true\"\n",
            _ => "",
        };
        let (_dir, file) = written(&format!("{needed}{line}"));
        let (status, _, stderr) = check_config(&file);
        assert_eq!(status, Some(0), "{line}: {stderr}");
    }
}

#[test]
fn the_effective_config_is_a_config_with_the_same_effect() {
    let (_dir, first) = written(include_str!("../systemd/example.toml"));
    let (_, printed, _) = check_config(&first);
    let (_dir, second) = written(&printed);
    let (status, again, stderr) = check_config(&second);
    assert_eq!((status, again), (Some(0), printed), "{stderr}");
    let load = |file| ConfigSource { file: Some(file), overrides: Overrides::default() }.load();
    assert_eq!(load(first).unwrap(), load(second).unwrap());
}

#[test]
fn a_bad_value_is_refused_with_its_line_and_key() {
    for (key, value, words) in [
        ("group", "\"a/b\"", "file name"),
        ("group", "\"\"", "empty"),
        ("group", "7", "string"),
        ("node_id", "\"a b\"", "blank"),
        ("priority", "256", "0 to 255"),
        ("priority", "-1", "0 to 255"),
        ("priority", "\"high\"", "0 to 255"),
        ("candidate", "\"yes\"", "true or false"),
        ("interface", "[]", "name an interface"),
        ("interface", "[\"a\", \"a\"]", "twice"),
        ("interface", "[1]", "array of names"),
        ("interface", "\"waytoolonginterface\"", "interface name"),
        ("multicast", "\"10.0.0.1:7669\"", "not a multicast address"),
        ("multicast", "\"239.255.76.69\"", "port"),
        ("multicast", "\"239.255.76.69:0\"", "port 0"),
        ("heartbeat_interval", "\"9ms\"", "10ms to 1m"),
        ("heartbeat_interval", "\"61s\"", "10ms to 1m"),
        ("heartbeat_interval", "1", "string"),
        ("heartbeat_interval", "\"soon\"", "not a duration"),
        ("leader_alive_threshold", "\"1099ms\"", "to 1100ms or more"),
        ("leader_election_duration", "\"0s\"", "out of range"),
        ("startup_grace_period", "\"0s\"", "out of range"),
        ("membership_sample_interval", "\"2h\"", "out of range"),
        ("preset", "\"raft\"", "fabric"),
        ("static_role", "\"king\"", "follower"),
        ("mode", "\"best\"", "\"available\" or \"quorum\""),
        ("voters", "[\"a\", \"b\", \"c\"]", "without mode"),
        ("voters", "[\"a\", 1]", "array of names"),
        ("demote_grace", "\"5s\"", "without mode"),
        ("fence", "\"poweroff -ff\"", "without mode"),
        ("min_candidates", "0", "1 to 1000"),
        ("min_candidates", "1001", "1 to 1000"),
        ("preempt", "1", "true or false"),
        ("preempt_delay", "\"-1s\"", "not a duration"),
        ("hook", "\"\"", "empty"),
        ("hook", "\"a\\u0000b\"", "NUL"),
        ("hook_timeout", "\"0s\"", "out of range"),
        ("hook_socket", "\"/run/lanelect/default.sock\"", "same path as socket"),
        ("on_elected_failure", "\"panic\"", "resign"),
        ("failure_holdoff", "\"0s\"", "out of range"),
        ("check", "\" \"", "empty"),
        ("check_interval", "\"99ms\"", "100ms to 1h"),
        ("check_timeout", "\"0s\"", "100ms to 1h"),
        ("check_fall", "0", "1 to 1000"),
        ("check_rise", "1001", "1 to 1000"),
        ("key_file", "\"\"", "empty"),
        ("state_dir", "false", "string"),
        ("socket_group", "\"a b\"", "Unix group"),
        ("colour", "\"red\"", "unknown key; remove it"),
        ("hartbeat_interval", "\"1s\"", "unknown key; did you mean heartbeat_interval?"),
        ("heartbeat-interval", "\"1s\"", "did you mean heartbeat_interval"),
    ] {
        assert_refused(&format!("# a comment\n\n{key} = {value}\n"), 3, key, words);
    }
    let long = format!("socket = \"/{}\"", "x".repeat(107));
    assert_refused(&long, 1, "socket", "107");
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    for (text, key) in [
        ("static_role = \"leader\"\npreempt = true", "preempt"),
        ("static_role = \"follower\"\npreempt = true", "preempt"),
        ("candidate = false\npreempt = true", "preempt"),
        ("candidate = false\nstatic_role = \"leader\"", "static_role"),
        ("static_role = \"leader\"\nmin_candidates = 2", "min_candidates"),
        ("heartbeat_interval = \"2s\"\nleader_alive_threshold = \"2s\"", "leader_alive_threshold"),
        ("preset = \"fabric\"\nheartbeat_interval = \"9500ms\"", "heartbeat_interval"),
        ("socket = \"/run/x\"\nhook_socket = \"/run/x\"", "hook_socket"),
    ] {
        assert_refused(text, 2, key, "");
    }
}

/// Files of quorum mode, wrong in their third line.
#[test]
fn quorum_mode_refuses_what_would_not_keep_its_promise() {
    let too_many: Vec<_> = (0..32).map(|n| format!("\"n{n}\"")).collect();
    for (key, value, words) in [
        ("voters", "[]", "names no node"),
        ("voters", "[\"a\", \"b\", \"a\"]", "names a twice"),
        ("voters", "[\"a b\"]", "blank"),
        ("voters", &format!("[{}]", too_many.join(", ")), "more than 31"),
        ("voters", "3", "array of names"),
    ] {
        assert_refused(&format!("mode = \"quorum\"\n\n{key} = {value}"), 3, key, words);
    }
    for (key, value, words) in [
        ("static_role", "\"leader\"", "priority"),
        ("static_role", "\"follower\"", "candidate = false"),
        ("min_candidates", "2", "majority"),
        ("demote_grace", "\"601s\"", "0s to 10m"),
        ("demote_grace", "5", "string"),
        ("leader_alive_threshold", "\"1h\"", "not be longer than 1h"),
        ("fence", "\"\"", "empty"),
        ("fence", "\"poweroff -ff\"", "without a hook"),
    ] {
        let text = format!("mode = \"quorum\"\nvoters = [\"a\", \"b\", \"c\"]\n{key} = {value}");
        assert_refused(&text, 3, key, words);
    }
}

#[test]
fn quorum_mode_without_voters_is_refused() {
    let (_dir, file) = written("mode = \"quorum\"");
    let (status, _, stderr) = check_config(&file);
    assert_eq!(status, Some(2));
    let told = format!("{}: voters (not set): is required", file.display());
    assert!(stderr.starts_with(&told), "{stderr}");
}

#[test]
fn valid_but_unusual_config_prints_a_warning_beside_the_effective_config() {
    let (_dir, file) = written("node_id = \"a\"\nmode = \"quorum\"\nvoters = [\"b\", \"a\"]");
    let (status, stdout, stderr) = check_config(&file);
    assert_eq!(status, Some(0));
    assert!(stdout.contains("voters = [\"a\", \"b\"]\n"), "{stdout}");
    assert!(stderr.starts_with("warning: voters: ") && stderr.contains("witness"), "{stderr}");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let (_dir, file) = written("priority = 300\ncolour = 1\npreempt = 7\n");
    let (status, _, stderr) = check_config(&file);
    assert_eq!((status, stderr.lines().count()), (Some(2), 3), "{stderr}");
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    let (_dir, file) = written("group = \"a\"\npriority 7\n");
    let (status, _, stderr) = check_config(&file);
    assert_eq!(status, Some(2));
    assert!(stderr.starts_with(&format!("{}:2: ", file.display())), "{stderr}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let (dir, file) = written(&"#".repeat(lanelect::config::CONFIG_MAX + 1));
    let missing = dir.path().join("missing.toml");
    for file in [&file, &missing, &dir.path().to_owned()] {
        let (status, _, stderr) = check_config(file);
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains(&file.display().to_string()), "{stderr}");
    }
    fs::write(&file, b"group = \"\xff\"").unwrap();
    assert!(check_config(&file).2.contains("UTF-8"));
}
