//! What the tests that hold documents to the program share.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

/// The fenced blocks of `text`: language, name and content. The language and perhaps a name are the
/// info string.
pub fn all_blocks(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    // Every second piece is inside a fence.
    let inside = text.split("```").skip(1).step_by(2);
    inside.filter_map(|block| {
        let (info, content) = block.split_once('\n')?;
        let (language, name) = info.split_once(' ').unwrap_or((info, ""));
        Some((language, name, content))
    })
}

/// Those of one language: name and content.
pub fn blocks<'a>(text: &'a str, language: &str) -> Vec<(&'a str, &'a str)> {
    let is_meant = |(of, name, content)| (of == language).then_some((name, content));
    all_blocks(text).filter_map(is_meant).collect()
}

/// What is under a heading of `text`, up to the next one like it.
pub fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    section.split("\n## ").next().unwrap()
}

/// `text` with each run of blanks and line ends as one blank.
pub fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs `check-config` with a key that is there, and with these options.
pub fn check_config(config: &str, options: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let (file, key) = (home.path().join("config.toml"), home.path().join("key"));
    fs::write(&file, config).unwrap();
    fs::write(&key, "ab".repeat(32)).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_lanelect"));
    check.arg("check-config").arg(&file).arg("--key-file").arg(&key).args(options);
    check.output().unwrap()
}
