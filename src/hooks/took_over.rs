//! The note about the hook that took over, in a file beside that of [`record`](super::record).
//!
//! Only the hook that took a resource can release it. The process that runs the hooks may have
//! restarted since, and its config file may now contain another hook. The file need not outlive
//! a restart of the machine: after it the first hook is `started`, which runs as configured.

use std::io;
use std::path::PathBuf;

use crate::os::small_file;

/// Largest note, in bytes. A larger file is not ours.
const NOTE_MAX: u64 = 1024 * 1024;

/// The hook that ran last for `started` or `elected`.
#[derive(Debug)]
pub(super) struct TookOver {
    path: PathBuf,
    /// None if no hook ever ran; none within if no hook was configured then.
    command: Option<Option<String>>,
}

impl TookOver {
    /// The note of an earlier life in the file `path`.
    pub(super) fn read(path: PathBuf) -> Self {
        let command = small_file::read(&path, NOTE_MAX)
            .and_then(|note| Ok(note.map(|note| serde_json::from_slice(&note)).transpose()?));
        let command = command.unwrap_or_else(|error| {
            log::warn!(
                "cannot read {}: {error}; the configured hook runs for demoted, even if another \
                 hook ran for elected",
                path.display()
            );
            None
        });
        TookOver { path, command }
    }

    /// The hook that took over, if one did.
    pub(super) const fn command(&self) -> Option<&Option<String>> {
        self.command.as_ref()
    }

    /// Notes that `command` takes over.
    pub(super) fn set(&mut self, command: Option<String>) {
        if self.command.as_ref() == Some(&command) {
            return;
        }
        self.write(&command);
        self.command = Some(command);
    }

    /// Writes the note again, because others have removed it.
    pub(super) fn restore(&self) {
        self.command.iter().for_each(|command| self.write(command));
    }

    fn write(&self, command: &Option<String>) {
        let note = serde_json::to_vec(command).map_err(io::Error::from);
        if let Err(error) = note.and_then(|note| small_file::replace(&self.path, &note)) {
            log::warn!(
                "cannot write {}: {error}; if this process ends and the config file has another \
                 hook then, that hook runs for demoted",
                self.path.display()
            );
        }
    }
}
