//! Whether another program of this host has the group's port.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::finding::Finding;
use crate::daemon::transport;

const TOPIC: &str = "port";

/// Who has the port.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) port: u16,
    /// The users with a UDP socket on it.
    pub(super) users: Vec<u32>,
    /// The user of the daemon; `None` if it is not known.
    pub(super) daemon: Option<u32>,
}

/// `socket` is the daemon's control socket, which belongs to its user.
pub(super) fn gather(port: u16, socket: &Path) -> Facts {
    let daemon = fs::metadata(socket).ok().map(|metadata| metadata.uid());
    Facts { port, users: transport::users_of_port(port), daemon }
}

pub(super) fn judge(facts: &Facts) -> Finding {
    let Facts { port, users, daemon } = facts;
    let others: Vec<_> = users
        .iter()
        .filter(|user| daemon.is_some_and(|daemon| daemon != **user))
        .map(u32::to_string)
        .collect();
    if others.is_empty() {
        return Finding::ok(TOPIC, format!("no program of another user has UDP port {port}"));
    }
    let others = others.join(", ");
    Finding::warn(TOPIC, format!("a program of uid {others} has UDP port {port} too"))
        .remedy(format!("`ss -lnup 'sport = :{port}'` as root shows it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_of_another_user_is_named() {
        let line = |users: &[u32], daemon| {
            judge(&Facts { port: 7669, users: users.to_vec(), daemon }).line(0)
        };
        assert!(line(&[998], Some(998)).starts_with("ok "));
        assert!(line(&[998], None).starts_with("ok "));
        let shared = line(&[998, 1001], Some(998));
        assert!(shared.starts_with("warn     port  a program of uid 1001 has UDP port 7669"));
    }
}
