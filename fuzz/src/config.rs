//! Whatever text a config file holds: it is refused with places that exist, one line for each
//! mistake, or the effective configuration that is printed reads back to the same.

use lanelect::config::{CONFIG_MAX, Config, ConfigError, Place, Problem};
use lanelect::wire::auth::Keyring;

/// Reads the bytes as a config file, and as a file of keys.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.len() > CONFIG_MAX {
        return;
    }
    match Config::from_toml(text) {
        Ok(config) => check_config(&config),
        Err(problems) => check_problems(text, problems),
    }
    let _ = Keyring::parse(text);
}

fn check_config(config: &Config) {
    let printed = config.to_toml();
    let again = Config::from_toml(&printed);
    assert_eq!(again.as_ref(), Ok(config), "{printed}");
    assert_eq!(config.changes_needing_restart(config), [""; 0]);
    config.warnings().iter().for_each(|warning| assert_is_one_line(warning));
}

fn check_problems(text: &str, problems: Vec<Problem>) {
    assert!(!problems.is_empty(), "refused without a reason");
    let lines = 1 + text.bytes().filter(|byte| *byte == b'\n').count();
    for problem in &problems {
        match problem.place {
            Place::Line(line) => assert!((1..=lines).contains(&line), "{problem:?}"),
            Place::Default => assert!(problem.key.is_some(), "{problem:?}"),
            Place::Flag(_) => panic!("nobody gave flags: {problem:?}"),
        }
    }
    let count = problems.len();
    let told = ConfigError::Invalid { file: None, problems }.to_string();
    assert_eq!(told.split('\n').count(), count, "{told}");
    told.split('\n').for_each(assert_is_one_line);
}

/// What is told reaches a terminal or a journal as it is.
fn assert_is_one_line(told: &str) {
    assert!(!told.is_empty() && !told.contains(char::is_control), "{told:?}");
}
