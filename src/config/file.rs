//! The values of a config file by key, each with its place, not yet checked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use toml::{Spanned, Value};

use super::CONFIG_MAX;
use super::error::{ConfigError, Place, Problem};
use super::settings::{self, SETTINGS, Setting};
use super::trust::Writable;

/// At most one in so many letters of a key is a typing error. More, and another key was meant.
const LETTERS_PER_ERROR: usize = 3;

/// One value with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Given {
    pub(super) value: Value,
    pub(super) place: Place,
}

/// All values that are set, by key. Every key is one of [`settings::SETTINGS`].
pub(super) type Written = BTreeMap<&'static str, Given>;

/// Values from the command line. They override the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overrides(Written);

impl Overrides {
    /// Gives `setting` this value, of the TOML type that the file would use.
    pub fn set(&mut self, setting: &'static Setting, value: impl Into<Value>) {
        let given = Given { value: value.into(), place: Place::Flag(setting.flag) };
        self.0.insert(setting.name, given);
    }

    pub(super) fn apply_to(&self, written: &mut Written) {
        written.extend(self.0.iter().map(|(name, given)| (*name, given.clone())));
    }
}

/// Which users may be able to write a file that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writers {
    /// Any user.
    Any,
    /// Only root and this process's user.
    Trusted,
}

/// Reads a file to the end.
///
/// # Errors
///
/// [`ConfigError::Read`], [`ConfigError::TooLong`] and [`ConfigError::Exposed`].
pub(super) fn read(path: &Path, writers: Writers) -> Result<String, ConfigError> {
    let unreadable = |source| ConfigError::Read { file: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    if writers == Writers::Trusted {
        // Checks the open file, not the path: the path may name another file by now.
        if let Some(by) = Writable::by_others(&file.metadata().map_err(unreadable)?) {
            return Err(ConfigError::Exposed { file: path.to_owned(), by });
        }
    }
    file.take(CONFIG_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > CONFIG_MAX {
        return Err(ConfigError::TooLong { file: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|_| unreadable(io::Error::other("it is not UTF-8 text")))
}

/// The values in a TOML text, and a problem for each unknown key.
///
/// # Errors
///
/// The first place where the text is not TOML.
pub(super) fn parse(text: &str) -> Result<(Written, Vec<Problem>), Problem> {
    let table: BTreeMap<Spanned<String>, Spanned<Value>> =
        toml::from_str(text).map_err(|error| syntax_problem(text, &error))?;
    let mut written = Written::new();
    let mut problems = Vec::new();
    for (key, value) in table {
        let place = Place::Line(line_of(text, key.span().start));
        match settings::find(key.get_ref()) {
            Some(setting) => {
                written.insert(setting.name, Given { value: value.into_inner(), place });
            }
            None => problems.push(unknown_key(key.into_inner(), place)),
        }
    }
    Ok((written, problems))
}

fn syntax_problem(text: &str, error: &toml::de::Error) -> Problem {
    let line = line_of(text, error.span().map_or(0, |span| span.start));
    Problem {
        place: Place::Line(line),
        key: None,
        message: format!("is not valid TOML: {}", error.message()),
    }
}

fn unknown_key(key: String, place: Place) -> Problem {
    let message = match meant(&key) {
        Some(setting) => format!("unknown key; did you mean {}?", setting.name),
        None => "unknown key; remove it, or see `lanelect run --help` for the keys".to_owned(),
    };
    Problem { place, key: Some(key), message }
}

/// The setting whose name is the most similar, if it is similar enough.
fn meant(key: &str) -> Option<&'static Setting> {
    let key = key.replace('-', "_").to_lowercase();
    let length = key.chars().count();
    let errors_max = length / LETTERS_PER_ERROR;
    let distance = |setting: &&Setting| strsim::osa_distance(setting.name, &key);
    // To compare a long text takes long.
    let comparable = |setting: &&Setting| setting.name.len().abs_diff(length) <= errors_max;
    let nearest = SETTINGS.iter().filter(comparable).min_by_key(distance)?;
    (distance(&nearest) <= errors_max).then_some(nearest)
}

/// The line, counted from 1, of a byte of `text`.
fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_lines_of_their_keys() {
        let (written, problems) =
            parse("# top\ngroup = \"web\"\n\ninterface = [\n\"a\",\n\"b\"]\n").unwrap();
        assert_eq!(problems, []);
        assert_eq!(written["group"].place, Place::Line(2));
        assert_eq!(written["interface"].place, Place::Line(4));
    }

    #[test]
    fn every_unknown_key_is_reported_with_its_line() {
        let text = "colour = 1\npriority = 3\nheartbeat-interval = \"1s\"\n[paint]\nx = 1\n";
        let (written, problems) = parse(text).unwrap();
        assert_eq!(written.len(), 1);
        let told = |key: &str| problems.iter().find(|p| p.key.as_deref() == Some(key)).unwrap();
        assert_eq!(told("colour").place, Place::Line(1));
        assert!(told("heartbeat-interval").message.contains("heartbeat_interval"));
        assert_eq!(told("paint").place, Place::Line(4));
        assert_eq!(problems.len(), 3);
    }

    #[test]
    fn unknown_key_suggests_the_setting_that_was_meant() {
        for (key, setting) in [
            ("hartbeat_interval", Some("heartbeat_interval")),
            ("Heartbeat-Interval", Some("heartbeat_interval")),
            ("prioriy", Some("priority")),
            ("prioritiy", Some("priority")),
            ("hook_timout", Some("hook_timeout")),
            ("keyfile", Some("key_file")),
            ("interfaces", Some("interface")),
            ("voter", Some("voters")),
            ("gruop", Some("group")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(meant(key).map(|setting| setting.name), setting, "{key}");
        }
        assert_eq!(meant(&"x".repeat(super::super::CONFIG_MAX)), None);
    }

    #[test]
    fn invalid_toml_is_reported_with_its_line() {
        for (text, line) in [
            ("group = \"a\"\npriority = = 3", 2),
            ("group = \"a\"\ngroup = \"b\"", 2),
            ("\n\ngroup = \"a", 3),
            ("priority = 99999999999999999999", 1),
        ] {
            let problem = parse(text).unwrap_err();
            assert_eq!(problem.place, Place::Line(line), "{text}: {problem:?}");
        }
    }
}
