//! The daemon's last will, in a file beside its control socket.
//!
//! There is one while this node leads, or its scripts still hold what the leader holds. It is for
//! `post-stop`, which finds it where the daemon was killed. A restart of the machine ends what it is
//! about; so the file is not synced, and lies where a restart removes it.

use std::io;
use std::path::{Path, PathBuf};

use super::small_file;
use crate::config::Config;
use crate::core::will::Will;

/// Longest will, in bytes. A longer one is not ours.
const WILL_MAX: u64 = 16 * 1024;

/// Where the will is kept.
#[derive(Debug)]
pub(super) struct WillFile {
    path: PathBuf,
    /// The last attempt to write failed, which was told.
    failing: bool,
}

impl WillFile {
    pub(super) fn of(config: &Config) -> Self {
        WillFile { path: config.socket.with_extension("will"), failing: false }
    }

    /// Keeps this will, or none. Where that fails the daemon goes on: what is missing is only what
    /// follows its death.
    pub(super) fn keep(&mut self, will: Option<&Will>) {
        let kept = match will {
            Some(will) => serde_json::to_vec(will)
                .map_err(io::Error::other)
                .and_then(|content| small_file::replace(&self.path, &content)),
            None => small_file::remove(&self.path),
        };
        match kept {
            Ok(()) => self.failing = false,
            Err(error) if !self.failing => {
                self.failing = true;
                log::warn!(
                    "cannot keep in {} what is to be done if the daemon dies: {error}; post-stop \
                     would not clean up after it",
                    self.path.display()
                );
            }
            Err(_) => {}
        }
    }

    /// The will that was kept last.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, or holds something else.
    pub(super) fn read(&self) -> io::Result<Option<Will>> {
        let Some(content) = small_file::read(&self.path, WILL_MAX)? else { return Ok(None) };
        Ok(Some(serde_json::from_slice(&content)?))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
