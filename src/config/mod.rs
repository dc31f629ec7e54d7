//! From a file and flags to a checked configuration.
//!
//! [`SETTINGS`] lists the keys. `file` parses them, `check` turns them into a [`Config`] or lists
//! every problem, and [`Config::to_toml`] writes the effective configuration. Shared keys are in a
//! file of their own, which `keys` reads.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use self::file::Writers;
use self::keys::KeyFileError;
use crate::core::params::{Params, Thresholds};
use crate::core::rank;
use crate::types::{GroupName, KeyMode, NodeId};
use crate::wire::auth::Keyring;

mod check;
mod commands;
mod duration;
mod effective;
mod error;
mod file;
pub mod keys;
mod peers;
mod settings;
mod trust;
mod values;
mod warnings;

pub use crate::control_api::DEFAULT_GROUP;
pub use crate::control_api::default_socket;
pub use check::DEFAULT_HOOK_TIMEOUT;
pub use duration::parse as parse_duration;
pub use error::{ConfigError, Place, Problem};
pub use file::Overrides;
pub use peers::{PEERS_MAX, Peer, PeerHost};
pub use settings::{Kind, SETTINGS, Setting};
pub use trust::Writable;
pub use values::{INTERFACES_MAX, group as parse_group};

/// Longest config file, in bytes. The longest sensible one, with comments, is a tenth of that.
pub const CONFIG_MAX: usize = 64 * 1024;

/// A checked configuration: every value is in its bounds and contradicts no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The election group. Also a valid file name.
    pub group: GroupName,
    /// This node.
    pub node_id: NodeId,
    /// The interfaces to send and receive on, at most [`INTERFACES_MAX`], each once. Empty: the
    /// interface of the kernel's route to the group.
    pub interfaces: Vec<String>,
    /// The group's multicast address; `None` if only [`peers`](Self::peers) carry the datagrams.
    pub multicast: Option<IpAddr>,
    /// The port of the multicast address, and of this host's own addresses to its peers. Not 0.
    pub port: u16,
    /// The hosts that get each datagram by unicast, at most [`PEERS_MAX`], each once.
    pub peers: Vec<Peer>,
    /// The election's parameters.
    pub election: Params,
    /// The hook's command line for `/bin/sh -c`.
    pub hook: Option<String>,
    /// The time limit for one hook run.
    pub hook_timeout: Duration,
    /// The fence's command line for `/bin/sh -c`. None in available mode, and without a hook.
    pub fence: Option<String>,
    /// The health check's command line for `/bin/sh -c`.
    pub check: Option<String>,
    /// The command line for `/bin/sh -c` of the health check of a leader.
    pub check_leader: Option<String>,
    /// The time from the start of one check run to the start of the next.
    pub check_interval: Duration,
    /// The time limit for one check run.
    pub check_timeout: Duration,
    /// The thresholds for the results. The election has them for each check that there is.
    pub check_thresholds: Thresholds,
    /// The hook-runner's socket; `None` if the daemon runs the hook itself.
    pub hook_socket: Option<PathBuf>,
    /// The file of shared keys; `None` if datagrams are not authenticated.
    pub key_file: Option<PathBuf>,
    /// The directory for the state that survives restarts.
    pub state_dir: PathBuf,
    /// The control socket.
    pub socket: PathBuf,
    /// The Unix group whose members may command the daemon.
    pub socket_group: Option<String>,
}

impl Config {
    /// Checks the text of a config file.
    ///
    /// # Errors
    ///
    /// Every problem in it.
    pub fn from_toml(text: &str) -> Result<Self, Vec<Problem>> {
        Config::read(text, &Overrides::default())
    }

    /// The multicast address and port; `None` without multicast.
    pub fn multicast_group(&self) -> Option<SocketAddr> {
        self.multicast.map(|address| SocketAddr::new(address, self.port))
    }

    /// Whether no datagram counts without a key.
    pub fn requires_key(&self) -> bool {
        self.election.key_mode == Some(KeyMode::Require)
    }

    fn read(text: &str, overrides: &Overrides) -> Result<Self, Vec<Problem>> {
        let (mut written, problems) = file::parse(text).map_err(|problem| vec![problem])?;
        overrides.apply_to(&mut written);
        check::check(&written, problems)
    }

    /// The shared keys, with their mode; none without `key_file`.
    ///
    /// # Errors
    ///
    /// If the file cannot be used.
    pub fn keyring(&self) -> Result<Option<Keyring>, KeyFileError> {
        let Some(path) = &self.key_file else { return Ok(None) };
        let mode = self.election.key_mode.unwrap_or_default();
        keys::load(path).map(|keyring| Some(keyring.with_mode(mode)))
    }

    /// The keys that differ in `new` and change only when the daemon restarts. A reload applies all
    /// other keys: those of hook, fence and checks, and those of the election except mode and
    /// voters.
    pub fn changes_needing_restart(&self, new: &Config) -> Vec<&'static str> {
        let voters = |config: &Config| {
            let quorum = config.election.quorum.as_ref();
            quorum.map(|quorum| quorum.voters.digest())
        };
        let (old_voters, new_voters) = (voters(self), voters(new));
        [
            ("group", self.group != new.group),
            ("node_id", self.node_id != new.node_id),
            ("interface", self.interfaces != new.interfaces),
            ("multicast", self.multicast_or_port() != new.multicast_or_port()),
            ("peers", self.peers != new.peers),
            ("mode", old_voters.is_some() != new_voters.is_some()),
            ("voters", old_voters != new_voters),
            ("hook_socket", self.hook_socket != new.hook_socket),
            ("state_dir", self.state_dir != new.state_dir),
            ("socket", self.socket != new.socket),
            ("socket_group", self.socket_group != new.socket_group),
        ]
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect()
    }

    fn multicast_or_port(&self) -> (Option<IpAddr>, u16) {
        (self.multicast, self.port)
    }

    /// The configuration of a running daemon after a reload of `new`: this one, with all of `new`
    /// that can change without a restart. The settings of another mode wait for the restart, as the
    /// mode does.
    #[must_use]
    pub fn taking_over(&self, new: Config) -> Config {
        let Config { hook, hook_timeout, check, check_leader, key_file, .. } = new;
        let Params { check: checked, check_leader: leader_checked, key_mode, .. } = new.election;
        let Params { refresh_interval, .. } = new.election;
        let (election, fence) = if self.election.mode() == new.election.mode() {
            (new.election, new.fence)
        } else {
            (self.election.clone(), self.fence.clone())
        };
        Config {
            election: Params {
                tie_break: rank::tie_break(election.tie_break.rule(), &self.group, &self.node_id),
                refresh_interval,
                key_mode,
                check: checked,
                check_leader: leader_checked,
                ..election.without_restart(&self.election)
            },
            fence: fence.filter(|_| hook.is_some() || self.hook_socket.is_some()),
            hook,
            hook_timeout,
            check,
            check_leader,
            check_interval: new.check_interval,
            check_timeout: new.check_timeout,
            check_thresholds: new.check_thresholds,
            key_file,
            ..self.clone()
        }
    }
}

/// The sources of a configuration. A reload reads them again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConfigSource {
    /// The file; `None` if there are only flags and defaults.
    pub file: Option<PathBuf>,
    /// The flags. They override the file, also on a reload.
    pub overrides: Overrides,
}

impl ConfigSource {
    /// Reads and checks the configuration.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or there are problems in it or in the flags.
    pub fn load(&self) -> Result<Config, ConfigError> {
        self.load_from(Writers::Any)
    }

    /// The same, for a process that runs the commands in the file with its privileges.
    ///
    /// # Errors
    ///
    /// Also if a user other than root and this process's user may write the file.
    pub fn load_trusted(&self) -> Result<Config, ConfigError> {
        self.load_from(Writers::Trusted)
    }

    /// The same as [`load`](Self::load), but as [`load_trusted`](Self::load_trusted) if
    /// `hook_socket` is set: a hook-runner rejects a file that other users may write, and no node
    /// may lead without its hook.
    ///
    /// # Errors
    ///
    /// Those of both.
    pub fn load_for_daemon(&self) -> Result<Config, ConfigError> {
        let config = self.load()?;
        if config.hook_socket.is_some() { self.load_trusted() } else { Ok(config) }
    }

    /// When the file's content, name or owner last changed, in milliseconds since 1970: no copy can
    /// set that back. None without a file, or if it cannot be seen.
    pub fn changed_ms(&self) -> Option<u64> {
        let metadata = fs::metadata(self.file.as_ref()?).ok()?;
        let millis = metadata.ctime().checked_mul(1000)? + metadata.ctime_nsec() / 1_000_000;
        u64::try_from(millis).ok()
    }

    /// What an operator should know about the file itself, which holds `config`, if it can be read.
    pub fn warnings(&self, config: &Config) -> Vec<String> {
        let Some(path) = &self.file else { return Vec::new() };
        trust::warning_for_config(path, config.hook_socket.is_some()).into_iter().collect()
    }

    fn load_from(&self, writers: Writers) -> Result<Config, ConfigError> {
        let read = |path| file::read(path, writers);
        let text = self.file.as_deref().map_or_else(|| Ok(String::new()), read)?;
        let invalid = |problems| ConfigError::Invalid { file: self.file.clone(), problems };
        Config::read(&text, &self.overrides).map_err(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::from_toml(text).unwrap()
    }

    #[test]
    fn only_keys_that_are_read_at_start_need_a_restart() {
        let old = config("");
        assert_eq!(old.changes_needing_restart(&old), [""; 0]);
        let hot = "priority = 9\nhook = \"x\"\nhook_timeout = \"1s\"\npreempt = true\n\
                   check = \"x\"\ncheck_interval = \"2s\"\ncheck_timeout = \"2s\"\ncheck_fall = 1\n\
                   check_leader = \"x\"";
        assert_eq!(old.changes_needing_restart(&config(hot)), [""; 0]);
        for (text, keys) in [
            ("group = \"x\"", &["group", "socket"][..]),
            ("node_id = \"another-name\"", &["node_id"]),
            ("interface = \"x\"", &["interface"]),
            ("multicast = \"239.1.1.1:1\"", &["multicast"]),
            ("peers = \"10.0.0.1\"", &["peers"]),
            ("mode = \"quorum\"\nvoters = \"a\"", &["mode", "voters"]),
            ("hook_socket = \"/x\"", &["hook_socket"]),
            ("state_dir = \"/x\"", &["state_dir"]),
            ("socket = \"/x\"", &["socket"]),
            ("socket_group = \"x\"", &["socket_group"]),
        ] {
            assert_eq!(old.changes_needing_restart(&config(text)), keys, "{text}");
        }
    }

    #[test]
    fn change_of_voters_needs_a_restart_and_their_order_does_not_matter() {
        let quorum = |rest: &str| config(&format!("mode = \"quorum\"\nhook = \"x\"\n{rest}"));
        let old = quorum("voters = [\"a\", \"b\", \"c\"]");
        let hot = "voters = [\"c\", \"b\", \"a\"]\ndemote_grace = \"1s\"\nfence = \"x\"";
        assert_eq!(old.changes_needing_restart(&quorum(hot)), [""; 0]);
        let other = quorum("voters = [\"a\", \"b\", \"d\"]");
        assert_eq!(old.changes_needing_restart(&other), ["voters"]);
    }

    #[test]
    fn keys_that_need_a_restart_are_reported_at_every_reload_and_not_applied() {
        let quorum =
            "mode = \"quorum\"\nhook = \"x\"\nfence = \"x\"\nvoters = [\"a\", \"b\", \"c\"]";
        let fewer = quorum.replace(", \"c\"", "");
        for (before, after, keys) in [
            (
                "key_file = \"/x\"\nkey_mode = \"prefer\"",
                "socket = \"/y\"\npriority = 7",
                &["socket"][..],
            ),
            ("state_dir = \"/y\"", "key_file = \"/x\"\npriority = 7", &["state_dir"]),
            (quorum, &format!("{fewer}\npriority = 7"), &["voters"]),
            (quorum, "hook = \"y\"\nstatic_role = \"leader\"", &["mode", "voters"]),
            ("", quorum, &["mode", "voters"]),
        ] {
            let (old, new) = (config(before), config(after));
            let taken = old.taking_over(new.clone());
            assert_eq!(old.changes_needing_restart(&taken), [""; 0], "{after}");
            assert_eq!(taken.changes_needing_restart(&new), keys, "{after}");
            assert_eq!(taken.key_file, new.key_file, "{after}");
            assert_eq!(taken.election.key_mode, new.election.key_mode, "{after}");
            assert_eq!(taken.hook, new.hook, "{after}");
            let same_mode = old.election.mode() == new.election.mode();
            let of_mode = if same_mode { &new } else { &old };
            assert_eq!(taken.election.priority, of_mode.election.priority, "{after}");
            assert_eq!(taken.election.static_role, of_mode.election.static_role, "{after}");
            assert_eq!(taken.fence, of_mode.fence, "{after}");
        }
    }
}
