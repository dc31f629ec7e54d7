//! The daemon: what drives an election on a host.
//!
//! The event loop owns one [`Election`](crate::core::Election) and all that reaches the outside:
//!
//! ```text
//!   sockets, netlink ─ transport ─┐              ┌─ store        (what must outlive a crash)
//!   timerfd ───────────── clock ──┤              ├─ transport    (datagrams)
//!   signals ──────────────────────┼─ event_loop ─┼─ hooks        (the operator's command)
//!   control socket ───── control ─┤      │       ├─ control      (answers, watchers)
//!   hook's end ──────────── hooks ┘   election   └─ narration, notify (log, service manager)
//! ```

pub mod control;
mod crash_plan;
mod event_loop;
pub mod interfaces;
mod names;
mod narration;
pub mod post_stop;
pub mod preflight;
mod rejections;
pub mod store;
pub mod transport;
mod worker;

use std::io;

pub use event_loop::EVENTS_PER_TURN;

use crate::config::keys::KeyFileError;
use crate::config::{Config, ConfigError, ConfigSource};
use crate::core::output::StopCause;
use crate::daemon::control::AccessError;
use crate::daemon::event_loop::Daemon;
use crate::daemon::store::StoreError;
use crate::daemon::transport::{RescanError, TransportError};
use crate::os::socket_file::BindError;

/// Why the daemon did not start, or ended without a request.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The key file cannot be used.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// The state on disk cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state on disk cannot be written, and quorum mode depends on it.
    #[error("{0}; in quorum mode a daemon starts only if it can save its votes and promises")]
    NoMemory(#[source] StoreError),
    /// The group cannot be reached through any interface.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The host's interfaces cannot be listed.
    #[error(transparent)]
    Rescan(#[from] RescanError),
    /// The control socket cannot be opened.
    #[error(transparent)]
    Control(#[from] BindError),
    /// `socket_group` cannot be resolved.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The system provides no randomness, timer, signals or polling.
    #[error("cannot run the event loop: {0}")]
    EventLoop(#[from] io::Error),
    /// The node id is in use.
    #[error(
        "duplicate node id: the daemon at {holder} started earlier with node_id {node_id}; give \
         this node another node_id (the default is the hostname, which hosts cloned from one image \
         share)"
    )]
    NodeIdTaken {
        /// The id.
        node_id: crate::types::NodeId,
        /// Where its holder is.
        holder: std::net::IpAddr,
    },
    /// A second SIGINT arrived before this daemon had handed over.
    #[error(
        "interrupted by a second SIGINT: this daemon ends before it has handed over, and its hook \
         may not have released what the leader holds; run `lanelect post-stop` with the flags of \
         this command, to run the hook for demoted and to resign"
    )]
    Interrupted,
    /// This daemon's memory was copied, and the copy runs too.
    #[error(
        "duplicate node id: a copy of this daemon, {node_id}, runs at {with}, because a host was \
         copied or restored with its memory; this daemon stops; shut down one of the two hosts, or \
         give it another node_id"
    )]
    LifeShared {
        /// The id.
        node_id: crate::types::NodeId,
        /// Where the copy is.
        with: std::net::IpAddr,
    },
}

impl RunError {
    /// Whether the administrator must change the configuration.
    pub fn is_config(&self) -> bool {
        match self {
            RunError::Config(error) => !error.is_passing(),
            RunError::Keys(error) => !error.is_passing(),
            _ => false,
        }
    }
}

/// Runs the daemon until it is asked to stop, and then until it has handed over.
///
/// # Errors
///
/// If it cannot start, or another node has its id.
pub fn run(source: ConfigSource) -> Result<(), RunError> {
    // Before it is read: a change in between must not pass for one that is in force.
    let changed_ms = source.changed_ms();
    let config = source.load_for_daemon()?;
    let keyring = config.keyring()?;
    let node_id = config.node_id;
    announce(&source, &config);
    let mut daemon = Daemon::new(source, config, keyring)?;
    daemon.note_file(changed_ms);
    match daemon.run()? {
        StopCause::Requested => Ok(()),
        StopCause::NodeIdTaken { holder } => Err(RunError::NodeIdTaken { node_id, holder }),
        StopCause::LifeShared { with } => Err(RunError::LifeShared { node_id, with }),
    }
}

fn announce(source: &ConfigSource, config: &Config) {
    log::info!(
        "lanelect {} starts as node {} in group {} at {}",
        env!("CARGO_PKG_VERSION"),
        config.node_id,
        config.group,
        config.multicast_group().map_or_else(
            || format!("port {} without multicast", config.port),
            |group| group.to_string(),
        ),
    );
    for warning in preflight::warnings(source, config) {
        log::warn!("{warning}");
    }
}
