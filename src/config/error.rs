//! Errors in a configuration: what is wrong, where, and what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;

use super::CONFIG_MAX;
use super::trust::Writable;

/// Why there is no configuration. Nothing was changed by the attempt to load it.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read, or is not UTF-8 text.
    #[error("cannot read the config file {file}: {source}")]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is longer than [`CONFIG_MAX`].
    #[error(
        "cannot use the config file {file}: it is longer than {CONFIG_MAX} bytes; check that it is the right file"
    )]
    TooLong {
        /// The file.
        file: PathBuf,
    },
    /// A user other than root and this process's user may write the file. Its commands would run
    /// with this process's privileges.
    #[error(
        "cannot use the config file {file}: other users may write it ({by}) and could run any \
         command through it; run: {}", .by.remedy(.file)
    )]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its owner and mode.
        by: Writable,
    },
    /// Keys or values are wrong. Displayed one a line.
    #[error("{}", Listing(.file.as_ref(), .problems))]
    Invalid {
        /// The file that was read, if one was.
        file: Option<PathBuf>,
        /// Every problem, in the order of the table of keys.
        problems: Vec<Problem>,
    },
}

impl ConfigError {
    /// Whether a restart may help, although nobody corrects anything.
    pub fn is_passing(&self) -> bool {
        matches!(self, ConfigError::Read { source, .. } if is_passing(source))
    }
}

/// Whether the same file may be readable a moment later: the system lacks memory or descriptors, or
/// the disk or the server behind it does not answer.
pub(super) fn is_passing(error: &io::Error) -> bool {
    use Errno::{EIO, EMFILE, ENFILE, ENOMEM, ESTALE, ETIMEDOUT};

    let errno = error.raw_os_error().map(Errno::from_raw);
    errno.is_some_and(|errno| [EIO, EMFILE, ENFILE, ENOMEM, ESTALE, ETIMEDOUT].contains(&errno))
}

/// The place where a value is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// On a line of the file, counted from 1.
    Line(usize),
    /// As a flag, named here without its dashes.
    Flag(&'static str),
    /// Nowhere: the default applies.
    Default,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The place of the value.
    pub place: Place,
    /// The key; `None` if the file is not TOML.
    pub key: Option<String>,
    /// What is wrong; what to do.
    pub message: String,
}

/// Problems as `FILE:LINE: KEY: MESSAGE` or `--FLAG: MESSAGE`, one a line.
struct Listing<'a>(Option<&'a PathBuf>, &'a [Problem]);

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listing(file, problems) = self;
        for (index, problem) in problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            match (problem.place, file) {
                (Place::Flag(flag), _) => write!(f, "--{flag}: ")?,
                (Place::Line(line), Some(file)) => write!(f, "{}:{line}: ", file.display())?,
                (Place::Line(line), None) => write!(f, "line {line}: ")?,
                (Place::Default, Some(file)) => write!(f, "{}: ", file.display())?,
                (Place::Default, None) => {}
            }
            // A key in a file may be any text.
            let key = problem.key.as_deref().map(str::escape_debug);
            match (key, problem.place) {
                (None, _) | (_, Place::Flag(_)) => {}
                (Some(key), Place::Line(_)) => write!(f, "{key}: ")?,
                (Some(key), Place::Default) => write!(f, "{key} (not set): ")?,
            }
            f.write_str(&problem.message)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::keys::KeyFileError;

    #[test]
    fn what_the_disk_or_the_system_denies_for_a_moment_needs_no_correction() {
        let file = PathBuf::from("/etc/lanelect/web.toml");
        let is_passing = |errno| {
            let source = || io::Error::from(errno);
            let key_file = KeyFileError::Read { path: file.clone(), source: source() };
            let config_file = ConfigError::Read { file: file.clone(), source: source() };
            assert_eq!(key_file.is_passing(), config_file.is_passing());
            config_file.is_passing()
        };
        for errno in [Errno::EIO, Errno::EMFILE, Errno::ENOMEM, Errno::ESTALE] {
            assert!(is_passing(errno), "{errno}");
        }
        for errno in [Errno::ENOENT, Errno::EACCES, Errno::EISDIR, Errno::ELOOP] {
            assert!(!is_passing(errno), "{errno}");
        }
        assert!(!ConfigError::TooLong { file: file.clone() }.is_passing());
    }

    #[test]
    fn problem_with_control_characters_in_its_key_is_one_line() {
        let problems = Config::from_toml(r#""a\nb\u001b[2J" = 1"#).unwrap_err();
        let told = ConfigError::Invalid { file: None, problems }.to_string();
        let expected = r"line 1: a\nb\u{1b}[2J: unknown key; ";
        assert!(told.starts_with(expected) && !told.contains(char::is_control), "{told:?}");
    }
}
