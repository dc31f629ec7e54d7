//! Reads the configuration again, on SIGHUP.
//!
//! Its files may be on a server that hangs, and looking up a group may use a directory that does
//! not answer. So a thread reads them, one reload at a time, and the previous settings stay in
//! force until it has finished.

use std::io;
use std::sync::mpsc::Sender;

use super::Daemon;
use crate::config::{Config, ConfigSource};
use crate::daemon::RunError;
use crate::daemon::control::{Access, AccessError};
use crate::daemon::worker::{self, Results};
use crate::hooks::HookSettings;
use crate::os::clock;
use crate::wire::auth::Keyring;

/// What a reload reads. `socket_group` changes only at a restart; the old group is looked up again,
/// because it may have new members. If the file no longer names it, it may be gone from the host.
#[derive(Debug)]
pub(super) struct Order {
    source: ConfigSource,
    socket_group: Option<String>,
}

/// Most lines of an error that the status shows, and most characters of each. The log has all.
const LINES_MAX: usize = 5;
const COLUMNS_MAX: usize = 400;

/// All results, or the error: then nothing is applied.
pub(super) type Loaded = Result<(Config, Access, Option<Keyring>), RunError>;

/// With the state of the config file before it was read: [`ConfigSource::changed_ms`].
type Reading = (Option<u64>, Loaded);

impl Order {
    /// May take any time. Refuses a file with which the daemon would not start: it must not end at
    /// the next restart because of what a reload accepted.
    pub(super) fn carry_out(self) -> Loaded {
        let config = self.source.load_for_daemon()?;
        let configured = Access::resolve(config.socket_group.as_deref())?;
        let access = match config.socket_group == self.socket_group {
            true => configured,
            false => self.access_as_before()?,
        };
        let keyring = config.keyring()?;
        Ok((config, access, keyring))
    }

    fn access_as_before(&self) -> Result<Access, AccessError> {
        match Access::resolve(self.socket_group.as_deref()) {
            Err(AccessError::UnknownGroup(_)) => Access::resolve(None),
            resolved => resolved,
        }
    }
}

/// The thread that reads. At most one reload is in progress, and at most one more waits for it.
#[derive(Debug)]
pub(super) struct Reloads {
    orders: Sender<Order>,
    results: Results<Reading>,
    is_reading: bool,
    again: bool,
    /// When the last reading began, in milliseconds since 1970.
    began_ms: u64,
}

impl Reloads {
    /// Reads with `load`, such as [`Order::carry_out`], and calls `wake` after each reading.
    pub(super) fn start(
        load: impl Fn(Order) -> Loaded + Send + 'static,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let read = move |order: Order| (order.source.changed_ms(), load(order));
        let (orders, results) = worker::start("reload", read, wake)?;
        Ok(Reloads { orders, results, is_reading: false, again: false, began_ms: 0 })
    }

    /// Whether a reload is in progress.
    #[cfg(test)]
    pub(super) const fn is_reading(&self) -> bool {
        self.is_reading
    }
}

impl Daemon {
    /// Begins to read the configuration. If a reload is in progress, another one follows it.
    pub(super) fn reload(&mut self) {
        if self.reloads.is_reading {
            self.reloads.again = true;
            return;
        }
        self.notifier.reloading();
        self.read_configuration();
    }

    /// Applies what was read, if the reading succeeded; an invalid configuration changes nothing.
    pub(super) fn take_reloaded(&mut self) {
        let Ok((changed_ms, loaded)) = self.reloads.results.try_recv() else { return };
        self.reloads.is_reading = false;
        match loaded {
            Ok((config, access, keyring)) => {
                self.codec.set_keyring(keyring);
                self.transport.set_requires_key(config.requires_key());
                self.rejections.tell_anew();
                self.apply(config, access);
                self.config_report.reload_failure = None;
                self.config_report.read_ms = self.reloads.began_ms;
                self.config_report.changed_ms = changed_ms;
                log::info!("configuration reloaded");
            }
            Err(error) => {
                log::error!("{error}\nconfiguration not reloaded: the previous one stays in force");
                self.config_report.reload_failure = Some(excerpt(&error.to_string()));
            }
        }
        if std::mem::take(&mut self.reloads.again) {
            self.read_configuration();
        } else {
            self.notifier.ready();
        }
    }

    fn read_configuration(&mut self) {
        let order =
            Order { source: self.source.clone(), socket_group: self.config.socket_group.clone() };
        self.reloads.is_reading = true;
        self.reloads.began_ms = clock::wall_ms();
        if self.reloads.orders.send(order).is_err() {
            let why = "cannot reload: the thread that reads the configuration has ended; restart \
                       the daemon";
            log::error!("{why}");
            self.config_report.reload_failure = Some(why.to_owned());
        }
    }

    fn apply(&mut self, new: Config, access: Access) {
        let unchanged = self.config.changes_needing_restart(&new);
        if !unchanged.is_empty() {
            log::warn!("not applied until the daemon restarts: {}", unchanged.join(", "));
        }
        self.config_report.restart_needed = unchanged.into_iter().map(str::to_owned).collect();
        let replaced = self.config.hook.clone();
        self.config = self.config.taking_over(new);
        self.warn_of_key_mode_at = clock::now();
        self.warn_of_key_mode();
        self.control.set_access(access);
        self.hooks.reconfigure(HookSettings::from(&self.config), clock::now());
        if self.config.hook != replaced {
            self.election.replace_hook(clock::now());
        }
        self.election.reconfigure(clock::now(), self.config.election.clone());
        self.carry_out();
        self.keep_crash_plan();
        // It ends with the last check.
        if self.stopped.is_none() {
            self.reconfigure_checks();
        }
    }
}

/// The beginning of an error, for the status: a file may hold thousands of mistakes.
fn excerpt(error: &str) -> String {
    let shorten = |line: &str| match line.char_indices().nth(COLUMNS_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    };
    let mut lines: Vec<_> = error.lines().take(LINES_MAX).map(shorten).collect();
    let more = error.lines().count() - lines.len();
    if more > 0 {
        lines.push(format!("and {more} more; see the log"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_that_neither_the_file_nor_the_host_has_any_more_hinders_no_reload() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("web.toml");
        let reload = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let source = ConfigSource { file: Some(file.clone()), ..ConfigSource::default() };
            let socket_group = Some("no-such-group-here".to_owned());
            Order { source, socket_group }.carry_out().map(drop)
        };
        let named = "node_id = \"a\"\nsocket_group = \"no-such-group-here\"\n";
        assert!(reload(named).is_err(), "the daemon would not start with it");
        reload("node_id = \"a\"\npriority = 7\n").unwrap();
    }

    #[test]
    fn status_shows_the_beginning_of_a_long_error() {
        assert_eq!(excerpt("a: 1\nb: 2"), "a: 1\nb: 2");
        let long = "é".repeat(COLUMNS_MAX + 1);
        assert_eq!(excerpt(&long), format!("{}…", "é".repeat(COLUMNS_MAX)));
        let many = "x\n".repeat(LINES_MAX + 7);
        assert_eq!(excerpt(&many), format!("{}and 7 more; see the log", "x\n".repeat(LINES_MAX)));
    }
}
