//! What a service manager does for a daemon that dies: what the unit file asks systemd for.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::host::{Host, ip};
use super::journal;
use super::patience::holds_within;

/// How long what the daemon left running may take to end, before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);

impl Host {
    /// Kills the daemon without warning, and cleans up after it.
    pub(crate) fn crash_under_service_manager(&self) {
        self.crash();
        self.clean_up();
    }

    /// Ends what a daemon that has ended left running, runs `post-stop`, and ends what that left.
    pub(crate) fn clean_up(&self) {
        self.end_leftovers();
        let (_, said) = self.post_stop();
        self.end_leftovers();
        assert!(!self.holds_after(&said), "{}'s hooks hold on: {said}", self.name);
    }

    /// Whether its hooks still hold, after a daemon that has ended and what else was `said` of its
    /// hooks.
    pub(super) fn holds_after(&self, said: &str) -> bool {
        let log = format!("{}{said}", self.log());
        let entries = journal::with_unheard(&self.journal.entries(), &self.name, &log);
        journal::leads(&entries, &self.name)
    }

    fn end_leftovers(&self) {
        if self.processes().is_empty() {
            return;
        }
        self.signal_all(Signal::SIGTERM);
        if !holds_within(PATIENCE, || self.processes().is_empty()) {
            self.signal_all(Signal::SIGKILL);
            // What KILL does not end the service manager leaves behind.
            holds_within(PATIENCE, || self.processes().is_empty());
        }
    }

    fn signal_all(&self, signal: Signal) {
        for process in self.processes() {
            // It may have ended by itself.
            let _ = kill(process, signal);
        }
    }

    /// Every process on this host.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        let listed = ip(&format!("netns pids {}", self.name));
        listed.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap())).collect()
    }
}
