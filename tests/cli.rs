//! The command line, as the real binary answers it. Nothing here starts a daemon.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use assert_cmd::Command;
use assert_cmd::assert::Assert;

const COMMANDS: [&str; 13] = [
    "run",
    "check-config",
    "status",
    "doctor",
    "is-leader",
    "watch",
    "yield",
    "maintenance",
    "hook-runner",
    "post-stop",
    "announce",
    "keygen",
    "demo",
];

fn lanelect(args: &[&str]) -> Assert {
    Command::cargo_bin("lanelect").unwrap().args(args).assert()
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

#[test]
fn help_lists_every_command_and_each_explains_itself() {
    let overview = stdout(&lanelect(&["--help"]).success());
    for command in COMMANDS {
        assert!(overview.contains(&format!("\n  {command} ")), "{command}: {overview}");
        let help = stdout(&lanelect(&[command, "--help"]).success());
        assert!(help.contains("Usage: lanelect "), "{help}");
    }
}

#[test]
fn every_key_is_a_flag_of_run() {
    let help = stdout(&lanelect(&["run", "--help"]).success());
    for setting in lanelect::config::SETTINGS {
        assert!(help.contains(&format!("--{} <", setting.flag)), "{}", setting.flag);
    }
}

#[test]
fn the_version_is_the_package_s() {
    let version = stdout(&lanelect(&["--version"]).success());
    assert_eq!(version, concat!("lanelect ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn wrong_usage_exits_with_2_and_says_why_on_stderr() {
    for args in [
        &[][..],
        &["lead"],
        &["run", "--colour", "red"],
        &["run", "--priority", "high"],
        &["run", "--candidate", "maybe"],
        &["run", "--group", "a", "--group", "b"],
        &["check-config"],
        &["hook-runner"],
        &["maintenance"],
        &["maintenance", "perhaps"],
        &["status", "--group", "../x"],
        &["status", "--group", "a", "--socket", "/b"],
        &["status", "--check", "--json"],
        &["status", "--check", "--watch"],
        &["keygen", "more"],
        &["announce", "eth0"],
        &["announce", "eth0", "10.0.0.100/24"],
    ] {
        let assert = lanelect(args).code(2);
        assert_eq!(stdout(&assert), "", "{args:?}");
        assert!(!assert.get_output().stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn keygen_prints_a_key_of_64_hexadecimal_digits_and_never_the_same() {
    let (first, second) = (stdout(&lanelect(&["keygen"])), stdout(&lanelect(&["keygen"])));
    for key in [&first, &second] {
        let digits = key.strip_suffix('\n').unwrap();
        assert_eq!(digits.len(), 64);
        assert!(digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{digits}");
        assert!(lanelect::wire::auth::Keyring::parse(key).is_ok());
    }
    assert_ne!(first, second);
}
