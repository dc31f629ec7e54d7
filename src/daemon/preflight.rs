//! What the daemon would refuse, and what its operator may regret, found before it does anything.
//!
//! `lanelect check-config` prints it, and the daemon logs the warnings when it starts. Nothing is
//! sent or written. This may wait for files and for a directory of groups.

use std::fs;
use std::os::unix::fs::MetadataExt;

use nix::unistd::{User, geteuid};

use super::RunError;
use super::control::Access;
use super::interfaces::Interfaces;
use super::transport::is_beyond_a_router;
use crate::config::{Config, ConfigSource, PeerHost};

/// The user of the daemon in `lanelect@.service`.
const UNIT_USER: &str = "lanelect";

/// What is wrong with a configuration.
#[derive(Debug)]
pub struct Findings {
    /// The configuration, or why the daemon would not start with it.
    pub outcome: Result<Config, Vec<RunError>>,
    /// What an operator should know. Each text is one line and begins with what it is about.
    pub warnings: Vec<String>,
}

/// Reads all that the daemon reads when it starts and when it reloads, in the same way.
pub fn examine(source: &ConfigSource) -> Findings {
    let config = match source.load_for_daemon() {
        Ok(config) => config,
        Err(error) => return Findings { outcome: Err(vec![error.into()]), warnings: Vec::new() },
    };
    let keys = config.keyring();
    let access = Access::resolve(config.socket_group.as_deref());
    let errors = [keys.err().map(RunError::from), access.err().map(RunError::from)];
    let errors: Vec<_> = errors.into_iter().flatten().collect();
    let mut warnings = warnings(source, &config);
    warnings.extend(foreign_key(&config));
    let outcome = if errors.is_empty() { Ok(config) } else { Err(errors) };
    Findings { outcome, warnings }
}

/// The warnings for a daemon that starts on this host.
pub(super) fn warnings(source: &ConfigSource, config: &Config) -> Vec<String> {
    let mut warnings = source.warnings(config);
    warnings.extend(config.warnings());
    if let Ok(interfaces) = Interfaces::scan() {
        warnings.extend(missing_interfaces(config, &interfaces));
        warnings.extend(routed_peers(config, &interfaces));
        warnings.extend(no_other_host(config, &interfaces));
    }
    warnings.extend(program_warnings(config));
    warnings
}

/// What is wrong with the programs of hook, fence and checks. A hook-runner that runs them warns
/// itself, and only root sees what it sees.
pub fn program_warnings(config: &Config) -> Vec<String> {
    if config.hook_socket.is_some() && !geteuid().is_root() {
        return Vec::new();
    }
    config.program_warnings()
}

/// Peers that the daemon does not send to. Names are not looked up: that may take long.
fn routed_peers(config: &Config, interfaces: &Interfaces) -> Option<String> {
    if config.requires_key() {
        return None;
    }
    let routed = config.peers.iter().filter(|peer| match peer.host {
        PeerHost::Address(address) => is_beyond_a_router(interfaces, address),
        PeerHost::Name(_) => false,
    });
    let routed: Vec<_> = routed.map(ToString::to_string).collect();
    (!routed.is_empty()).then(|| {
        format!(
            "peers: not in a network of this host, and not sent to without a key: {}; set key_file \
             on every node, with key_mode \"require\"",
            routed.join(", ")
        )
    })
}

/// A list of this host alone. Names are not looked up.
fn no_other_host(config: &Config, interfaces: &Interfaces) -> Option<String> {
    let is_own = |host: &PeerHost| match host {
        PeerHost::Address(address) => interfaces.owner_of(*address).is_some(),
        PeerHost::Name(_) => false,
    };
    let is_alone =
        config.multicast_group().is_none() && config.peers.iter().all(|peer| is_own(&peer.host));
    is_alone.then(|| {
        "peers: lists no host but this one, which then reaches nobody and never leads; list every \
         host of the group"
            .to_owned()
    })
}

fn missing_interfaces(config: &Config, interfaces: &Interfaces) -> Vec<String> {
    let Some(group) = config.multicast else { return Vec::new() };
    let choice = interfaces.choice_for(group);
    let missing = config.interfaces.iter().filter(|name| interfaces.get(name).is_none());
    let warning = |name| {
        format!(
            "interface: this host has no interface {name} now, and the daemon waits for it; if \
             the name is wrong, set interface{choice}"
        )
    };
    missing.map(warning).collect()
}

/// Root can read every key file, but the daemon of the unit only its own.
fn foreign_key(config: &Config) -> Option<String> {
    let path = config.key_file.as_ref().filter(|_| geteuid().is_root())?;
    let user = User::from_name(UNIT_USER).ok()??;
    let owner = fs::metadata(path).ok()?.uid();
    let path = path.display();
    (owner != user.uid.as_raw()).then(|| {
        format!(
            "key_file {path} does not belong to {UNIT_USER}, and the daemon of lanelect@.service, \
             which runs as that user, cannot read it; run: chown {UNIT_USER} {path}"
        )
    })
}
