//! Which peers may command the daemon, rather than only query it.

use std::fmt;
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::{Group, Uid, User};

use crate::control_api::{Refusal, RefusalKind};

/// Most members of `socket_group` that are looked up; members listed after them may not command.
pub const GROUP_MEMBERS_MAX: usize = 1024;

/// The process at the other end of a connection, as the kernel knew it when it connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its process id; 0 if it is in another pid namespace. For logs, and for post-stop.
    pub pid: i32,
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
}

impl Peer {
    /// Asks the kernel for the connected process.
    pub(super) fn of(stream: &impl AsFd) -> nix::Result<Self> {
        let peer = getsockopt(stream, PeerCredentials)?;
        Ok(Peer { pid: peer.pid(), uid: peer.uid(), gid: peer.gid() })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "uid {} (pid {})", self.uid, self.pid)
    }
}

/// Why the rights to command could not be set up. Nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// `socket_group` names no group.
    #[error(
        "socket_group = \"{0}\": this host has no such group; create it (`groupadd {0}`), or \
         remove the key: then only root and the daemon's user may command"
    )]
    UnknownGroup(String),
    /// The user or group database could not be read.
    #[error("socket_group = \"{group}\": cannot look up the group: {source}")]
    Lookup {
        /// The group.
        group: String,
        /// The error of the lookup.
        source: nix::Error,
    },
}

/// The rights to command: root, the daemon's own user, and `socket_group`.
///
/// The group's members are looked up once. A lookup reads `/etc/group` or asks a directory server,
/// which may take seconds. An election cannot wait for that, least of all at the request of any
/// process that can open the socket. So a new member may command only after a reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    own_uid: u32,
    group: Option<CommandGroup>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CommandGroup {
    name: String,
    gid: u32,
    members: Vec<u32>,
}

impl Access {
    /// Looks the group up. This may block: call it at start, and later on another thread.
    ///
    /// # Errors
    ///
    /// [`AccessError`] if the group does not exist or cannot be looked up.
    pub fn resolve(socket_group: Option<&str>) -> Result<Self, AccessError> {
        let group = socket_group.map(CommandGroup::resolve).transpose()?;
        Ok(Access { own_uid: Uid::effective().as_raw(), group })
    }

    /// Whether this peer may command: by its user, its effective group, or as a listed member.
    pub fn may_command(&self, peer: Peer) -> bool {
        peer.uid == 0
            || peer.uid == self.own_uid
            || self.group.as_ref().is_some_and(|group| group.admits(peer))
    }

    /// The error message for a peer that may not command.
    pub(super) fn refusal(&self, peer: Peer) -> Refusal {
        let way_in = match &self.group {
            Some(group) => format!(
                "or as a member of the group {0} (`usermod -aG {0} USER`, then reload the daemon)",
                group.name
            ),
            None => "or set socket_group in its config".to_owned(),
        };
        let uid = peer.uid;
        let message = format!(
            "not permitted: uid {uid} may query this daemon but not command it; run the command as \
             root (sudo), {way_in}"
        );
        Refusal::new(RefusalKind::NotPermitted, message)
    }
}

impl CommandGroup {
    fn resolve(name: &str) -> Result<Self, AccessError> {
        let lookup = |source| AccessError::Lookup { group: name.to_owned(), source };
        let group = Group::from_name(name)
            .map_err(lookup)?
            .ok_or_else(|| AccessError::UnknownGroup(name.to_owned()))?;
        if group.mem.len() > GROUP_MEMBERS_MAX {
            log::warn!(
                "socket_group {name}: it has more than {GROUP_MEMBERS_MAX} members; the others \
                 cannot command the daemon"
            );
        }
        let mut members = Vec::new();
        for member in group.mem.iter().take(GROUP_MEMBERS_MAX) {
            match User::from_name(member).map_err(lookup)? {
                Some(user) => members.push(user.uid.as_raw()),
                None => log::warn!("socket_group {name}: this host has no user {member}; ignored"),
            }
        }
        Ok(CommandGroup { name: name.to_owned(), gid: group.gid.as_raw(), members })
    }

    fn admits(&self, peer: Peer) -> bool {
        peer.gid == self.gid || self.members.contains(&peer.uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 990;
    const STRANGER: Peer = Peer { pid: 7, uid: 1000, gid: 1000 };

    fn access(group: Option<(u32, &[u32])>) -> Access {
        let group = group.map(|(gid, members)| CommandGroup {
            name: "ops".to_owned(),
            gid,
            members: members.to_vec(),
        });
        Access { own_uid: OWN, group }
    }

    #[test]
    fn root_and_the_daemons_own_user_may_command_and_nobody_else() {
        let access = access(None);
        assert!(access.may_command(Peer { uid: 0, ..STRANGER }));
        assert!(access.may_command(Peer { uid: OWN, ..STRANGER }));
        assert!(!access.may_command(STRANGER));
        assert!(!access.may_command(Peer { gid: 0, ..STRANGER }), "group root is not root");
    }

    #[test]
    fn a_member_may_command_by_its_effective_or_a_supplementary_group() {
        let access = access(Some((50, &[1001])));
        assert!(access.may_command(Peer { gid: 50, ..STRANGER }));
        assert!(access.may_command(Peer { uid: 1001, ..STRANGER }));
        assert!(!access.may_command(STRANGER));
        assert!(!access.may_command(Peer { uid: 50, ..STRANGER }), "a gid is no uid");
    }

    #[test]
    fn a_refusal_names_the_way_in() {
        let open = access(Some((50, &[]))).refusal(STRANGER);
        assert_eq!(open.kind, RefusalKind::NotPermitted);
        assert!(open.message.contains("uid 1000"), "{}", open.message);
        assert!(open.message.contains("usermod -aG ops USER"), "{}", open.message);
        let closed = access(None).refusal(STRANGER);
        assert!(closed.message.contains("set socket_group"), "{}", closed.message);
    }

    #[test]
    fn a_group_is_looked_up_by_its_name() {
        let root = Access::resolve(Some("root")).unwrap();
        assert_eq!(root.own_uid, Uid::effective().as_raw());
        assert_eq!(root.group.unwrap().gid, 0);
        let error = Access::resolve(Some("no-such-group-here")).unwrap_err();
        assert!(error.to_string().contains("groupadd no-such-group-here"), "{error}");
    }
}
